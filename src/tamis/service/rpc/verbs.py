"""The verbs of gRPC, each a method of the service in `tamis.proto`."""

from __future__ import annotations

from tamis.service.rpc.event_verbs import EventVerbs
from tamis.service.rpc.question_verbs import QuestionVerbs
from tamis.service.rpc.record_verbs import RecordVerbs
from tamis.service.rpc.schema_verbs import SchemaVerbs
from tamis.service.rpc.subscription_verbs import SubscriptionVerbs


class GrpcVerbs(EventVerbs, SubscriptionVerbs, QuestionVerbs, SchemaVerbs, RecordVerbs):
    """All verbs: the method `PublishStream` is `publish_stream`."""
