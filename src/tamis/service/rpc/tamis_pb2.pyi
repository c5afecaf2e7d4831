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
    __slots__ = ("id", "ticket", "condition", "name", "sink", "metadata")
    ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    ticket: str
    condition: str
    name: str
    sink: Sink
    metadata: bytes
    def __init__(self, id: _Optional[str] = ..., ticket: _Optional[str] = ..., condition: _Optional[str] = ..., name: _Optional[str] = ..., sink: _Optional[_Union[Sink, _Mapping[str, object]]] = ..., metadata: _Optional[bytes] = ...) -> None: ...

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

class NotificationGroup(_message.Message):
    __slots__ = ("notifications", "cursor")
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    notifications: _containers.RepeatedCompositeFieldContainer[Notification]
    cursor: int
    def __init__(self, notifications: _Optional[_Iterable[_Union[Notification, _Mapping[str, object]]]] = ..., cursor: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("subscriptions",)
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, subscriptions: _Optional[_Iterable[str]] = ...) -> None: ...

class SchemaRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SchemaResponse(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...
