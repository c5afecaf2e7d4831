"""How many shards the subscriptions of a log get."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.store.changes import RENEW, SUBSCRIBE, UPDATE
from tamis.store.log import Log
from tamis.store.version import Version

SHARD = 3_000_000  # subscriptions: about a gigabyte of index
_MORE, _LESS = 2, 4  # times as many or as few: then all shards are compiled anew


def shards_of(subscriptions: int) -> int:
    """How many shards so many subscriptions should have.

    >>> shards_of(0), shards_of(SHARD), shards_of(SHARD + 1)
    (1, 1, 2)
    """
    return max(1, -(-subscriptions // SHARD))


def shards_at(log: Log, at: int, before: Version | None) -> int:
    """How many shards a version should have.

    As many as the previous one, so that it can be compiled from that; unless far more or fewer are
    needed, and the user has not asked for this number.
    """
    changed = log.counts(0 if before is None else before.sequence, at)[1]
    if before is None:
        # There are at most as many subscriptions as changes, whose number is known.
        return 1 if changed <= SHARD else shards_of(live_count(log.changes(0, at)))
    now = len(before.shards)
    if before.made.get("asked") or not before.made.get("log", True):
        return now
    known = sum(each.subscriptions for each in before.shards)
    if not (_off(shards_of(known + changed), now) or _off(shards_of(known - changed), now)):
        return now
    wanted = shards_of(live_count(log.changes(0, at)))
    return wanted if _off(wanted, now) else now


def live_count(changes: pa.Table) -> int:
    """How many subscriptions are live after all of the changes, as `Log.changes` gives them."""
    said = changes.filter(pc.not_equal(changes["kind"], RENEW)).select(["sequence", "id", "kind"])
    if not said.num_rows:
        return 0
    last = said.group_by("id").aggregate([("sequence", "max")])["sequence_max"]
    at = np.searchsorted(np.asarray(said["sequence"]), np.asarray(last))
    made = pc.is_in(said["kind"].take(pa.array(at)), pa.array([SUBSCRIBE, UPDATE]))
    return int(pc.sum(made).as_py())


def _off(wanted: int, now: int) -> bool:
    return wanted >= _MORE * now or wanted * _LESS <= now
