"""A client of the service, for programs: `Client`, and `AsyncClient` for asyncio.

Both are thin: what is sent, what is read and when to try again is in modules that do no input or
output of their own.
"""

from __future__ import annotations

from tamis.client.answers import (
    ExplainedEvent,
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
    "Client",
    "ExplainedEvent",
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
