"""Durable state: the log of events and changes, and the compiled versions of the subscriptions.

A `Log` gives every event and every change of a subscription its sequence number. `Lives` folds the
changes into who is subscribed at a sequence number. `Versions` keeps what was compiled from that,
`Stats` what past events are like. Everything is files that are put in place by rename: a process
may be killed at any moment.
"""

from tamis.store.changes import cancel, changes_table, expire, renew, subscribe
from tamis.store.lives import Life, Lives
from tamis.store.log import Log
from tamis.store.segments import Segment, appended
from tamis.store.stats import Stats
from tamis.store.versions import Shard, Version, Versions, describe

__all__ = [
    "Life",
    "Lives",
    "Log",
    "Segment",
    "Shard",
    "Stats",
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
