"""Snapshots of subscriptions: the fold of changes, its no-ops and its leases."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.store import LiveSubscription, SubscriptionSnapshot, cancel, expire, renew, subscribe

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _at(first: int, *tables: pa.Table) -> pa.Table:
    """Changes with sequence numbers, as a log returns them."""
    table = pa.concat_tables(tables)
    return table.add_column(0, "sequence", pa.array(range(first, first + table.num_rows)))


def test_a_second_subscribe_replaces() -> None:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(_at(3, subscribe(["a", "b"], ["x", "y"]), subscribe(["a"], ["z"])))
    assert dict(snapshot) == {
        "b": LiveSubscription(4, "y", None),
        "a": LiveSubscription(5, "z", None),
    }
    assert list(snapshot) == ["b", "a"]  # in the order in which they were added
    assert snapshot.sequence == 6
    assert "a" in snapshot
    assert len(snapshot) == 2


def test_no_ops_are_counted() -> None:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(_at(0, cancel(["a"]), renew(["a"], NOW), expire(["a", "b"])), 10)
    assert snapshot.ignored == {"cancel": 1, "renew": 1, "expire": 2}
    assert not snapshot
    assert snapshot.sequence == 10


def test_numbers_go_upwards() -> None:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(_at(3, cancel(["a"])), 7)
    for given, end in ((_at(6, cancel(["a"])), None), (_at(7, cancel(["a", "b"])), 8)):
        with pytest.raises(StoreError, match=r"once each, .* from 7 on"):
            snapshot.fold(given, end)
    with pytest.raises(StoreError, match="from 7 on"):
        snapshot.fold(_at(7, cancel(["a", "b"])).take([1, 0]))
    with pytest.raises(StoreError, match="from 7 on"):
        snapshot.fold(_at(0, cancel([])), 6)
    with pytest.raises(StoreError, match="lack sequence"):
        snapshot.fold(cancel(["a"]))
    assert snapshot.sequence == 7


def test_leases() -> None:
    snapshot = SubscriptionSnapshot()
    untils = [NOW + HOUR, NOW, NOW, None, NOW + 2 * HOUR]
    snapshot.fold(_at(0, subscribe([5, 4, 3, 2, 1], ["x"] * 5, untils)))
    assert snapshot.due(NOW - HOUR) == []
    assert snapshot.due(NOW) == [3, 4]
    assert snapshot.due(NOW + HOUR) == [3, 4, 5]
    assert snapshot.due(NOW.replace(tzinfo=None)) == [3, 4]  # asked about an earlier moment
    snapshot.fold(_at(5, renew([4], NOW + 3 * HOUR), renew([3], None), expire([5])))
    assert snapshot.due(NOW + 2 * HOUR) == [1]
    snapshot.fold(_at(8, renew([4], NOW), subscribe([1], ["x"], NOW)))
    assert snapshot.due(NOW) == [1, 4]
    snapshot.fold(_at(10, subscribe([1], ["x"]), cancel([4])))
    assert snapshot.due(NOW + 99 * HOUR) == []


def test_leases_renewed_over_and_over_take_no_memory() -> None:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(_at(0, subscribe(["a", "b"], ["x", "x"], [NOW, NOW + HOUR])))
    for turn in range(50):
        snapshot.fold(_at(2 + 100 * turn, renew(["a"] * 100, [NOW + turn * HOUR] * 100)))
    assert len(snapshot._leases) < 1200
    assert snapshot.due(NOW + 49 * HOUR) == ["b", "a"]


@pytest.mark.parametrize(("ids", "names"), [("text", ["a", "b"]), ("int64", [1, 2])])
def test_as_a_table(ids: str, names: list[Any]) -> None:
    snapshot = SubscriptionSnapshot()
    assert snapshot.table(ids).num_rows == 0
    snapshot.fold(_at(3, subscribe(names, ["x", "y"], [NOW, None])))
    assert snapshot.table(ids).to_pylist() == [
        {"id": names[0], "condition": "x", "added": 3, "until": NOW, "language": None},
        {"id": names[1], "condition": "y", "added": 4, "until": None, "language": None},
    ]
    assert dict(pickle.loads(pickle.dumps(snapshot))) == dict(snapshot)
