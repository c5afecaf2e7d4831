"""How a stream stands, from manifests that are written by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.spark.stream.progress import StreamStatus, StreamWatch, quantile, query_of, rate
from tamis.store import Log, subscribe

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


class World:
    """A log, and a folder that a stream writes to."""

    def __init__(self, folder: Path) -> None:
        self.log = Log.create(folder / "log", SCHEMA)
        self.out = folder / "out"
        (self.out / "manifests").mkdir(parents=True)
        self._batches = 0

    def publish(self, events: int) -> None:
        self.log.publish(pa.table({"n": list(range(events))}))

    def done(self, written: float, found: int, dead: int = 0, query: str = "q") -> None:
        """A batch up to the end of the log."""
        number, self._batches = self._batches, self._batches + 1
        parts = []
        if found:
            (self.out / "notifications").mkdir(exist_ok=True)
            name = f"part-{number}.parquet"
            rows = pa.table({"sequence": [number] * found, "subscription": list(range(found))})
            pq.write_table(rows, self.out / "notifications" / name)
            parts.append({"folder": "notifications", "name": name, "rows": found})
        manifest = {
            "batch": number,
            "offsets": [{"sequence": self.log.end, "version": 2}],
            "notifications": found,
            "dead": dead,
            "written": written,
            "parts": parts,
        }
        path = self.out / "manifests" / f"{query}-{number:010d}-{number}.json"
        path.write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_before_the_first_batch(world: World) -> None:
    watch = StreamWatch(world.log, world.out, "q", 0.0)
    world.publish(7)
    assert watch.look(time.time()) == StreamStatus(0, 0, -1, 0, 0, 0, 7, None, None, None, None)
    assert watch.newest() == []


def test_totals_rates_and_latency(world: World) -> None:
    now = time.time()
    watch = StreamWatch(world.log, world.out, "q", now - 5)
    world.log.change(subscribe(["a", "b"], ["n < 3", "n < 4"]))
    world.publish(10)
    world.done(now + 1, found=4)
    world.publish(30)
    world.done(now + 3, found=6, dead=2)
    world.publish(5)
    found = watch.look(now + 4)
    assert found[:7] == (2, 42, 2, 40, 10, 2, 5)
    assert found.rate == pytest.approx(30 / 3, rel=0.01)
    assert found.matches == pytest.approx(6 / 3, rel=0.01)
    # The first ten waited about one second, the others about three.
    assert found.p50 == found.p95 == pytest.approx(3, abs=0.9)
    assert len(watch.newest()) == 6
    assert len(watch.newest(rows=2)) == 2
    # Nothing new: the totals stay, and rates of long ago are gone.
    later = watch.look(now + 100)
    assert later[:7] == found[:7]
    assert later[7:] == (None, None, None, None)


def test_only_its_own_query_counts(world: World) -> None:
    watch = StreamWatch(world.log, world.out, "q", 0.0)
    world.publish(3)
    world.done(time.time(), found=1, query="other")
    assert watch.look(time.time()).batches == 0


def test_batches_of_an_earlier_run_give_no_rate(world: World) -> None:
    now = time.time()
    for _ in range(3):
        world.publish(3)
        world.done(now - 10, found=1)
    found = StreamWatch(world.log, world.out, "q", now).look(now)
    assert (found.batches, found.events, found.rate, found.p50) == (3, 9, None, None)


def test_quantiles_are_those_of_all_values_and_a_rate_needs_two() -> None:
    values = [(0.3, 5), (0.1, 4), (0.2, 1)]
    spelt = sorted(value for value, count in values for _ in range(count))
    for part in (0.1, 0.4, 0.5, 0.51, 0.9, 1.0):
        assert quantile(values, part) == spelt[max(0, -(-int(part * 100) // 10) - 1)]
    assert quantile([], 0.5) is None
    assert rate([], 1.0) is None
    assert rate([(0.0, 5)], 1.0) is None
    assert rate([(0.0, 5), (1.0, 5)], 2.0) == 2.5


def test_the_query_of_a_checkpoint(tmp_path: Path) -> None:
    assert query_of(tmp_path) is None
    (tmp_path / "metadata").write_text('{"id":"abc"}', encoding="utf-8")
    assert query_of(tmp_path) == "abc"
