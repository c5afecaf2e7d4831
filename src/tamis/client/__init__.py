"""A client of the service, for programs: `Client`, and `AsyncClient` for asyncio.

Both are thin: what is sent, what is read and when to try again is in modules that do no input or
output of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis import lazy_names

if TYPE_CHECKING:
    from tamis.client.answers import (
        BacktestReport,
        BacktestSample,
        BacktestSpan,
        BulkLine,
        DeadLetterInfo,
        DeadLetterList,
        ExplainedEvent,
        ExtensionReceipt,
        KeyInfo,
        LeaseReceipt,
        NotificationPage,
        PublishReceipt,
        ReceivedNotification,
        SubscriptionInfo,
        SubscriptionList,
    )
    from tamis.client.async_client import AsyncClient
    from tamis.client.client import Client
    from tamis.client.event_batches import SourcedEvent
    from tamis.client.retries import Retries
    from tamis.client.service_error import ServiceError, UnreachableError

__all__ = [
    "AsyncClient",
    "BacktestReport",
    "BacktestSample",
    "BacktestSpan",
    "BulkLine",
    "Client",
    "DeadLetterInfo",
    "DeadLetterList",
    "ExplainedEvent",
    "ExtensionReceipt",
    "KeyInfo",
    "LeaseReceipt",
    "NotificationPage",
    "PublishReceipt",
    "ReceivedNotification",
    "Retries",
    "ServiceError",
    "SourcedEvent",
    "SubscriptionInfo",
    "SubscriptionList",
    "UnreachableError",
]

# Lazy imports: what needs no connection loads no library for HTTP.
_WHERE = {
    "AsyncClient": "tamis.client.async_client",
    "Client": "tamis.client.client",
    "BacktestReport": "tamis.client.answers",
    "BacktestSample": "tamis.client.answers",
    "BacktestSpan": "tamis.client.answers",
    "BulkLine": "tamis.client.answers",
    "DeadLetterInfo": "tamis.client.answers",
    "DeadLetterList": "tamis.client.answers",
    "ExplainedEvent": "tamis.client.answers",
    "ExtensionReceipt": "tamis.client.answers",
    "KeyInfo": "tamis.client.answers",
    "LeaseReceipt": "tamis.client.answers",
    "NotificationPage": "tamis.client.answers",
    "PublishReceipt": "tamis.client.answers",
    "ReceivedNotification": "tamis.client.answers",
    "Retries": "tamis.client.retries",
    "ServiceError": "tamis.client.service_error",
    "SourcedEvent": "tamis.client.event_batches",
    "SubscriptionInfo": "tamis.client.answers",
    "SubscriptionList": "tamis.client.answers",
    "UnreachableError": "tamis.client.service_error",
}
__getattr__, __dir__ = lazy_names(__name__, _WHERE)
