import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("json", "source", "id", "time", "context")
    class ContextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JSON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    source: str
    id: str
    time: _timestamp_pb2.Timestamp
    context: _containers.ScalarMap[str, str]
    def __init__(self, json: _Optional[bytes] = ..., source: _Optional[str] = ..., id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., context: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping[str, object]]]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("first", "count", "duplicates", "problem")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    duplicates: int
    problem: Problem
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ..., duplicates: _Optional[int] = ..., problem: _Optional[_Union[Problem, _Mapping[str, object]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("status", "detail", "json")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    status: int
    detail: str
    json: bytes
    def __init__(self, status: _Optional[int] = ..., detail: _Optional[str] = ..., json: _Optional[bytes] = ...) -> None: ...

class Sink(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("condition", "lease", "endless", "language", "name", "sink", "metadata", "request_key", "id")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ENDLESS_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_KEY_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    condition: str
    lease: _duration_pb2.Duration
    endless: bool
    language: str
    name: str
    sink: Sink
    metadata: bytes
    request_key: str
    id: str
    def __init__(self, condition: _Optional[str] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, object]]] = ..., endless: _Optional[bool] = ..., language: _Optional[str] = ..., name: _Optional[str] = ..., sink: _Optional[_Union[Sink, _Mapping[str, object]]] = ..., metadata: _Optional[bytes] = ..., request_key: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("id", "ticket", "until", "secret")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    until: _timestamp_pb2.Timestamp
    secret: str
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., secret: _Optional[str] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("id", "condition", "language", "owner", "name", "until", "sink", "metadata")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    condition: str
    language: str
    owner: str
    name: str
    until: _timestamp_pb2.Timestamp
    sink: Sink
    metadata: bytes
    def __init__(self, id: _Optional[str] = ..., condition: _Optional[str] = ..., language: _Optional[str] = ..., owner: _Optional[str] = ..., name: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., sink: _Optional[_Union[Sink, _Mapping[str, object]]] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class BulkSubscription(_message.Message):
    __slots__ = ("condition", "lease", "until", "language", "name", "sink", "metadata", "owner", "id")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    condition: str
    lease: _duration_pb2.Duration
    until: _timestamp_pb2.Timestamp
    language: str
    name: str
    sink: Sink
    metadata: bytes
    owner: str
    id: str
    def __init__(self, condition: _Optional[str] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, object]]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., language: _Optional[str] = ..., name: _Optional[str] = ..., sink: _Optional[_Union[Sink, _Mapping[str, object]]] = ..., metadata: _Optional[bytes] = ..., owner: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class SubscribeManyRequest(_message.Message):
    __slots__ = ("subscriptions", "together", "request_key")
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_KEY_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedCompositeFieldContainer[BulkSubscription]
    together: bool
    request_key: str
    def __init__(self, subscriptions: _Optional[_Iterable[_Union[BulkSubscription, _Mapping[str, object]]]] = ..., together: _Optional[bool] = ..., request_key: _Optional[str] = ...) -> None: ...

class BulkOutcome(_message.Message):
    __slots__ = ("error", "id", "ticket", "until", "secret")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    error: str
    id: str
    ticket: str
    until: _timestamp_pb2.Timestamp
    secret: str
    def __init__(self, error: _Optional[str] = ..., id: _Optional[str] = ..., ticket: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., secret: _Optional[str] = ...) -> None: ...

class SubscribeManyResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[BulkOutcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[BulkOutcome, _Mapping[str, object]]]] = ...) -> None: ...

class ShowRequest(_message.Message):
    __slots__ = ("id", "ticket")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("q", "cursor", "most", "owner")
    Q_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    q: str
    cursor: str
    most: int
    owner: str
    def __init__(self, q: _Optional[str] = ..., cursor: _Optional[str] = ..., most: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("subscriptions", "cursor")
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedCompositeFieldContainer[Subscription]
    cursor: str
    def __init__(self, subscriptions: _Optional[_Iterable[_Union[Subscription, _Mapping[str, object]]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("id", "ticket", "condition", "name", "sink", "metadata", "remove")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    condition: str
    name: str
    sink: Sink
    metadata: bytes
    remove: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ..., condition: _Optional[str] = ..., name: _Optional[str] = ..., sink: _Optional[_Union[Sink, _Mapping[str, object]]] = ..., metadata: _Optional[bytes] = ..., remove: _Optional[_Iterable[str]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("id", "ticket", "lease", "endless")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ENDLESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    lease: _duration_pb2.Duration
    endless: bool
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, object]]] = ..., endless: _Optional[bool] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("id", "ticket")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NotificationsRequest(_message.Message):
    __slots__ = ("subscription", "ticket", "after", "body")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    subscription: str
    ticket: str
    after: int
    body: str
    def __init__(self, subscription: _Optional[str] = ..., ticket: _Optional[str] = ..., after: _Optional[int] = ..., body: _Optional[str] = ...) -> None: ...

class Notification(_message.Message):
    __slots__ = ("sequence", "subscription", "event", "time")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    subscription: str
    event: bytes
    time: _timestamp_pb2.Timestamp
    def __init__(self, sequence: _Optional[int] = ..., subscription: _Optional[str] = ..., event: _Optional[bytes] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ...) -> None: ...

class EndingLease(_message.Message):
    __slots__ = ("subscription", "until")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    subscription: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, subscription: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ...) -> None: ...

class NotificationGroup(_message.Message):
    __slots__ = ("notifications", "cursor", "endings")
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ENDINGS_FIELD_NUMBER: _ClassVar[int]
    notifications: _containers.RepeatedCompositeFieldContainer[Notification]
    cursor: int
    endings: _containers.RepeatedCompositeFieldContainer[EndingLease]
    def __init__(self, notifications: _Optional[_Iterable[_Union[Notification, _Mapping[str, object]]]] = ..., cursor: _Optional[int] = ..., endings: _Optional[_Iterable[_Union[EndingLease, _Mapping[str, object]]]] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("condition", "language")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    condition: str
    language: str
    def __init__(self, condition: _Optional[str] = ..., language: _Optional[str] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("condition", "event", "language")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    condition: str
    event: bytes
    language: str
    def __init__(self, condition: _Optional[str] = ..., event: _Optional[bytes] = ..., language: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("matches", "explanation")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    matches: bool
    explanation: str
    def __init__(self, matches: _Optional[bool] = ..., explanation: _Optional[str] = ...) -> None: ...

class MatchRequest(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: bytes
    def __init__(self, event: _Optional[bytes] = ...) -> None: ...

class MatchResponse(_message.Message):
    __slots__ = ("subscriptions", "count")
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedScalarFieldContainer[str]
    count: int
    def __init__(self, subscriptions: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ...) -> None: ...

class SchemaRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SchemaResponse(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class StartBacktestRequest(_message.Message):
    __slots__ = ("condition", "language", "first", "end", "since", "until", "samples", "buckets")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    condition: str
    language: str
    first: int
    end: int
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    samples: int
    buckets: int
    def __init__(self, condition: _Optional[str] = ..., language: _Optional[str] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., samples: _Optional[int] = ..., buckets: _Optional[int] = ...) -> None: ...

class ShowBacktestRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class CancelBacktestRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class CancelBacktestResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Backtest(_message.Message):
    __slots__ = ("id", "progress", "events", "matched", "dead", "first", "end", "over_time", "samples")
    ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    OVER_TIME_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    id: str
    progress: float
    events: int
    matched: int
    dead: int
    first: int
    end: int
    over_time: _containers.RepeatedCompositeFieldContainer[BacktestBucket]
    samples: _containers.RepeatedCompositeFieldContainer[BacktestSample]
    def __init__(self, id: _Optional[str] = ..., progress: _Optional[float] = ..., events: _Optional[int] = ..., matched: _Optional[int] = ..., dead: _Optional[int] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., over_time: _Optional[_Iterable[_Union[BacktestBucket, _Mapping[str, object]]]] = ..., samples: _Optional[_Iterable[_Union[BacktestSample, _Mapping[str, object]]]] = ...) -> None: ...

class BacktestBucket(_message.Message):
    __slots__ = ("begin", "end", "events", "matched")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    begin: _timestamp_pb2.Timestamp
    end: _timestamp_pb2.Timestamp
    events: int
    matched: int
    def __init__(self, begin: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ..., events: _Optional[int] = ..., matched: _Optional[int] = ...) -> None: ...

class BacktestSample(_message.Message):
    __slots__ = ("sequence", "event")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    event: bytes
    def __init__(self, sequence: _Optional[int] = ..., event: _Optional[bytes] = ...) -> None: ...

class CreateDomainRequest(_message.Message):
    __slots__ = ("name", "domain")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    domain: bytes
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[bytes] = ...) -> None: ...

class CreateAttributeRequest(_message.Message):
    __slots__ = ("name", "domain", "definition")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    domain: str
    definition: bytes
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[str] = ..., definition: _Optional[bytes] = ...) -> None: ...

class ExtendEventTypeRequest(_message.Message):
    __slots__ = ("name", "attribute", "use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    attribute: str
    use: str
    def __init__(self, name: _Optional[str] = ..., attribute: _Optional[str] = ..., use: _Optional[str] = ...) -> None: ...

class CreateEventTypeRequest(_message.Message):
    __slots__ = ("name", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GrowDomainRequest(_message.Message):
    __slots__ = ("name", "values", "order")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: bytes
    order: _containers.RepeatedCompositeFieldContainer[OrderedValues]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[bytes] = ..., order: _Optional[_Iterable[_Union[OrderedValues, _Mapping[str, object]]]] = ...) -> None: ...

class OrderedValues(_message.Message):
    __slots__ = ("lower", "higher")
    LOWER_FIELD_NUMBER: _ClassVar[int]
    HIGHER_FIELD_NUMBER: _ClassVar[int]
    lower: str
    higher: str
    def __init__(self, lower: _Optional[str] = ..., higher: _Optional[str] = ...) -> None: ...

class ExtensionResponse(_message.Message):
    __slots__ = ("sequence", "version")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    version: int
    def __init__(self, sequence: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class ShowEventRequest(_message.Message):
    __slots__ = ("number", "cloud_event")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CLOUD_EVENT_FIELD_NUMBER: _ClassVar[int]
    number: int
    cloud_event: bool
    def __init__(self, number: _Optional[int] = ..., cloud_event: _Optional[bool] = ...) -> None: ...

class ShowEventResponse(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class RotateSecretRequest(_message.Message):
    __slots__ = ("id", "ticket")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ...) -> None: ...

class RotateSecretResponse(_message.Message):
    __slots__ = ("secret",)
    SECRET_FIELD_NUMBER: _ClassVar[int]
    secret: str
    def __init__(self, secret: _Optional[str] = ...) -> None: ...

class DeadLettersRequest(_message.Message):
    __slots__ = ("after", "most")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    after: int
    most: int
    def __init__(self, after: _Optional[int] = ..., most: _Optional[int] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("id", "subscription", "sequence", "attempts", "error", "moment")
    ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MOMENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    subscription: str
    sequence: int
    attempts: int
    error: str
    moment: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[int] = ..., subscription: _Optional[str] = ..., sequence: _Optional[int] = ..., attempts: _Optional[int] = ..., error: _Optional[str] = ..., moment: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ...) -> None: ...

class DeadLettersResponse(_message.Message):
    __slots__ = ("dead_letters", "cursor")
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    cursor: int
    def __init__(self, dead_letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping[str, object]]]] = ..., cursor: _Optional[int] = ...) -> None: ...

class RetryDeadLetterRequest(_message.Message):
    __slots__ = ("id", "ticket")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    id: int
    ticket: str
    def __init__(self, id: _Optional[int] = ..., ticket: _Optional[str] = ...) -> None: ...

class ReplayRequest(_message.Message):
    __slots__ = ("id", "ticket")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ...) -> None: ...

class ReplayResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: int
    def __init__(self, replayed: _Optional[int] = ...) -> None: ...

class ShowCursorRequest(_message.Message):
    __slots__ = ("consumer",)
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    def __init__(self, consumer: _Optional[str] = ...) -> None: ...

class SetCursorRequest(_message.Message):
    __slots__ = ("consumer", "cursor")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    cursor: int
    def __init__(self, consumer: _Optional[str] = ..., cursor: _Optional[int] = ...) -> None: ...

class ConsumerCursor(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: int
    def __init__(self, cursor: _Optional[int] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ("name", "roles")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateKeyResponse(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[Key]
    def __init__(self, keys: _Optional[_Iterable[_Union[Key, _Mapping[str, object]]]] = ...) -> None: ...

class Key(_message.Message):
    __slots__ = ("id", "name", "roles", "created")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    created: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, object]]] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RevokeKeyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OperatorsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OperatorsResponse(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...
