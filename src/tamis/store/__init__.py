"""Durable state: the log of events and changes, and the compiled versions of the subscriptions.

A `Log` gives every event and every change of a subscription its sequence number. A
`SubscriptionSnapshot` folds the changes into the subscriptions that are live at a sequence number.
`Versions` keeps the engines compiled from such snapshots, `Stats` the statistics of past events.
All files are renamed into place: a process may be killed at any moment.
"""

from tamis.store.changes import cancel, changes_table, expire, renew, subscribe
from tamis.store.log import Appended, Log
from tamis.store.pack import appended
from tamis.store.stats import Stats
from tamis.store.subscription_snapshot import LiveSubscription, SubscriptionSnapshot
from tamis.store.version import Shard, Version, describe
from tamis.store.versions import Versions

__all__ = [
    "Appended",
    "LiveSubscription",
    "Log",
    "Shard",
    "Stats",
    "SubscriptionSnapshot",
    "Version",
    "Versions",
    "appended",
    "cancel",
    "changes_table",
    "describe",
    "expire",
    "renew",
    "subscribe",
]
