"""Merging segments keeps all rows and numbers, for readers meanwhile and when it is killed."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.files.names import names_in
from tamis.store import Log, Segment, appended, cancel
from tests.unit.store.world import files, fresh, prices, published


def _filled(folder: Path, count: int) -> Log:
    log = fresh(folder)
    for n in range(count):
        log.publish(prices(n))
    return log


def test_small_ones_become_large_ones(tmp_path: Path) -> None:
    log = _filled(tmp_path, 65)
    reader = Log.open(log.folder)
    rows = published(reader)
    assert log.compact(log.end) == 65 - len(files(log)) > 60
    assert files(log) == [segment.name for segment in log.boundaries()]
    assert published(reader) == published(log) == published(Log.open(log.folder)) == rows
    assert log.compact(log.end) == 0


def test_only_what_lies_before(tmp_path: Path) -> None:
    log = _filled(tmp_path, 20)
    times = [appended(table) for _, table in log.events(0)]
    for before in (10, 0):
        log.compact(before, rows=3)
        assert [s.rows for s in log.boundaries()] == [3, 3, 3, 1] + [1] * 10
    found = [appended(table) for _, table in log.events(0)]
    assert found == [times[at] for at in (2, 5, 8, *range(9, 20))], "the time of the last"


def test_kinds_and_columns_are_not_mixed(log: Log) -> None:
    texts = pa.table({"json": ["{}"]})
    for given in (prices(1), prices(2), texts, texts, prices(5), "change", "change", prices(8)):
        if isinstance(given, str):
            log.change(cancel(["ann"]))
        else:
            log.publish(given)
    rows = [row for _, table in log.events(0) for row in table.to_pylist()]
    log.compact(log.end)
    found = [segment[:3] for segment in log.boundaries()]
    assert found == [
        (0, 2, "events"),
        (2, 2, "events"),
        (4, 1, "events"),
        (5, 2, "changes"),
        (7, 1, "events"),
    ]
    assert [row for _, table in log.events(0) for row in table.to_pylist()] == rows
    assert log.changes(0).column("sequence").to_pylist() == [5, 6]


def test_where_events_and_changes_take_turns(log: Log) -> None:
    for n in range(40):
        log.publish(prices(3 * n, 3 * n + 1))
        log.change(cancel([f"id {n}"]))
    reader = Log.open(log.folder)
    rows, changes = published(reader), reader.changes(0)
    listed = [segment[:3] for segment in reader.boundaries()]
    times = [appended(table) for _, table in log.events(0)]
    for each in (20, 61, 120, 120):
        log.compact(each)
        for other in (reader, log, Log.open(log.folder)):
            assert [segment[:3] for segment in other.boundaries()] == listed
            assert published(other) == rows
            assert other.changes(0) == changes
            assert other.counts(1, 100) == (66, 33)
            assert [appended(table) for _, table in other.events(0)] == times
    assert len(files(log)) < 8
    assert log.publish(prices(1)) == range(120, 121)


def test_large_segments_in_a_pack_are_mapped(log: Log) -> None:
    log.publish(prices(*range(20_000)))
    log.change(cancel(["a"] * 20_000))
    log.publish(prices(1))
    assert log.compact(log.end) == 1
    before = pa.total_allocated_bytes()
    ((first, table),) = log.events(10, 40_000)
    assert pa.total_allocated_bytes() - before < 10_000
    assert (first, table.column("price").to_pylist()) == (10, list(range(10, 20_000)))


def test_a_damaged_pack(log: Log) -> None:
    for n in range(3):
        log.publish(prices(n))
        log.change(cancel(["a"]))
    log.compact(log.end)
    (path,) = (log.folder / "segments").glob("*-packed")
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:-8] + b"\xff" * 8, whole[:-8] + bytes(8)):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="packed: is damaged or cannot be read"):
            _ = Log.open(log.folder).end
    path.write_bytes(whole)
    second = log.boundaries()[1].offset
    path.write_bytes(bytes(second) + whole[second:])
    with pytest.raises(StoreError, match="packed: is damaged or cannot be read"):
        published(Log.open(log.folder))


def test_a_row_is_seldom_written_again(log: Log) -> None:
    written = 0
    for n in range(200):
        log.publish(prices(n))
        before = {name: Segment.named(name) for name in files(log)}
        log.compact(log.end)
        written += sum(
            found.rows
            for name in files(log)
            if name not in before and (found := Segment.named(name))
        )
    assert written < 200 * 14  # at most once each time its segment grows by half
    assert len(files(log)) < 14
    assert published(log) == [(n, n) for n in range(200)]


def test_a_mapped_segment_stays_readable(log: Log) -> None:
    for n in range(3):
        log.publish(prices(*range(n * 20_000, n * 20_000 + 20_000)))
    reader = Log.open(log.folder)
    rows = reader.events(5)
    first, table = next(rows)
    assert log.compact(log.end) == 1
    assert (first, table.column("price").to_pylist()) == (5, list(range(5, 20_000)))
    # The next one that the reader knew of is gone; it goes on in the merged one.
    first, table = next(rows)
    assert (first, table.column("price").to_pylist()) == (20_000, list(range(20_000, 40_000)))
    assert [first for first, _ in rows] == [40_000]


def test_dead_before_the_small_ones_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(tmp_path, 6)
    rows = published(log)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda *given, **options: None)
        log.compact(log.end)
    (log.folder / "segments" / ".merge-0123").touch()
    assert len(files(log)) == 8
    for each in (log, Log.open(log.folder)):
        assert [s.rows for s in each.boundaries()] == [5, 1]
        assert published(each) == rows
        assert each.end == 6
    assert Log.open(log.folder).publish(prices(6)) == range(6, 7)
    assert log.compact(log.end, rows=5) == 5
    assert [Segment.named(name) for name in files(log)] == log.boundaries()


def test_reading_while_segments_are_merged(log: Log) -> None:
    failed: list[Exception] = []
    done = threading.Event()

    def read(again: bool) -> None:
        reader = Log.open(log.folder)
        try:
            while not done.is_set():
                reader = Log.open(log.folder) if again else reader
                end = reader.end
                assert published(reader, 0, end) == [(n, n) for n in range(end)]
        except (AssertionError, StoreError, OSError) as why:
            failed.append(why)

    readers = [threading.Thread(target=read, args=(again,)) for again in (True, False)]
    for reader in readers:
        reader.start()
    for n in range(150):
        assert log.publish(prices(n)) == range(n, n + 1)
        if n % 5 == 0:
            Log.open(log.folder).compact(n, rows=40)
    done.set()
    for reader in readers:
        reader.join()
    assert not failed


def test_a_merge_of_the_last_files_that_overtakes_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system lists neither the merged file nor the files it replaced."""
    writer = _filled(tmp_path, 6)
    reader, appender = Log.open(writer.folder), Log.open(writer.folder)
    assert reader.end == 6
    writer.compact(6)
    looks = 0

    def overtaken(folder: Path) -> set[str]:
        nonlocal looks
        looks += 1
        return names_in(folder) if looks % 2 == 0 else set()

    monkeypatch.setattr("tamis.store.log.names_in", overtaken)
    assert reader.end == 6
    looks = 0
    assert appender.publish(prices(6)) == range(6, 7), "who knows of nothing looks twice"
    monkeypatch.undo()
    assert published(writer) == [(at, at) for at in range(7)]


def test_lost_files_are_reported(log: Log) -> None:
    for price in range(2):
        log.publish(prices(price))
    assert log.end == 2
    (log.folder / "segments" / files(log)[-1]).unlink()
    with pytest.raises(StoreError, match="it ends at 1, and ended at 2 before"):
        _ = log.end
