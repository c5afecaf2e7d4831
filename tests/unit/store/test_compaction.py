"""Merging packs keeps all rows and numbers, for readers meanwhile and when it is killed."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.store import Log, appended, cancel
from tamis.store.log import segment_files
from tamis.store.maintenance.erase_rows import erase_rows
from tamis.store.pack import moments
from tests.unit.store.world import files, fresh, prices, published

pytestmark = pytest.mark.usefixtures("small_segments")


def _filled(folder: Path, count: int) -> Log:
    log = fresh(folder)
    for n in range(count):
        log.publish(prices(n))
    return log


def _rows(log: Log) -> list[tuple[int, int, str]]:
    return [(each.first, each.end - each.first, each.kind) for each in log.boundaries()]


def test_small_ones_become_large_ones(tmp_path: Path) -> None:
    log = _filled(tmp_path, 65)
    reader = Log.open(log.folder)
    rows = published(reader)
    assert len(files(log)) == 17
    assert log.compact(log.end) == 65 - len(_rows(log)) > 60
    assert len(files(log)) <= 4
    assert published(reader) == published(log) == published(Log.open(log.folder)) == rows
    assert log.compact(log.end) == 0


def test_only_complete_segments_that_lie_before(tmp_path: Path) -> None:
    log = _filled(tmp_path, 18)
    log.compact(10, rows=3)
    assert [rows for _, rows, _ in _rows(log)] == [3, 3, 2] + [1] * 10
    log.compact(0)
    assert [rows for _, rows, _ in _rows(log)] == [3, 3, 2] + [1] * 10


def test_kinds_and_columns_are_not_mixed(log: Log) -> None:
    texts = pa.table({"json": ["{}"]})
    for given in (prices(1), prices(2), texts, texts, prices(5), "change", "change", prices(8)):
        if isinstance(given, str):
            log.change(cancel(["ann"]))
        else:
            log.publish(given)
    log.publish(prices(9))
    rows = [row for _, table in log.events(0) for row in table.to_pylist()]
    log.compact(log.end)
    assert _rows(log) == [
        (0, 2, "events"),
        (2, 2, "events"),
        (4, 1, "events"),
        (5, 2, "changes"),
        (7, 1, "events"),
        (8, 1, "events"),
    ]
    assert [row for _, table in log.events(0) for row in table.to_pylist()] == rows
    assert log.changes(0).column("sequence").to_pylist() == [5, 6]


def test_where_events_and_changes_take_turns(log: Log) -> None:
    for n in range(40):
        log.publish(prices(3 * n, 3 * n + 1))
        log.change(cancel([f"id {n}"]))
    reader = Log.open(log.folder)
    rows, changes, listed = published(reader), reader.changes(0), _rows(reader)
    for each in (20, 61, 120, 120):
        log.compact(each)
        for other in (reader, log, Log.open(log.folder)):
            assert _rows(other) == listed
            assert published(other) == rows
            assert other.changes(0) == changes
            assert other.counts(1, 100) == (66, 33)
    assert len(files(log)) < 8
    assert log.publish(prices(1)) == range(120, 121)


def test_a_row_is_seldom_written_again(log: Log) -> None:
    written = 0
    for n in range(400):
        log.publish(prices(n))
        before = _inodes(log)
        log.compact(log.end)
        new = _inodes(log) - before
        sections = segment_files(log.folder, str(log.identity)).sections(0, log.end)
        written += sum(each.rows for each in sections if each.inode in new)
    assert written < 400 * 14
    assert len(files(log)) < 14
    assert published(log) == [(n, n) for n in range(400)]


def _inodes(log: Log) -> set[int]:
    return {each.stat().st_ino for each in (log.folder / "segments").iterdir()}


def test_the_time_of_the_last(tmp_path: Path) -> None:
    log = _filled(tmp_path, 5)
    times = [appended(table) for _, table in log.events(0)]
    log.compact(log.end)
    assert [appended(table) for _, table in log.events(0)] == times[3:]


def test_a_mapped_segment_stays_readable(log: Log) -> None:
    for n in range(5):
        log.publish(prices(*range(n * 20_000, n * 20_000 + 20_000)))
    reader = Log.open(log.folder)
    rows = reader.events(5)
    first, table = next(rows)
    assert log.compact(log.end) == 3
    assert (first, table.column("price").to_pylist()) == (5, list(range(5, 20_000)))
    # The segment that the reader knew is gone; it goes on in the merged one.
    first, table = next(rows)
    assert (first, table.column("price").to_pylist()) == (20_000, list(range(20_000, 80_000)))
    assert [first for first, _ in rows] == [80_000]


def test_dead_before_the_small_ones_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(tmp_path, 13)
    rows = published(log)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda *given, **options: None)
        log.compact(log.end)
    (log.folder / "segments" / ".merge-0123").touch()
    assert len(files(log)) == 5
    for each in (log, Log.open(log.folder)):
        assert published(each) == rows
        assert each.counts(0) == (13, 0)
        assert each.end == 13
    assert Log.open(log.folder).publish(prices(13)) == range(13, 14)
    log.compact(log.end)
    assert len(files(log)) == 2
    assert published(log) == [*rows, (13, 13)]


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


def test_merging_while_a_pack_is_being_appended(tmp_path: Path) -> None:
    """The last segment may end with a part of a pack at any moment."""
    log = _filled(tmp_path, 6)
    last = log.folder / "segments" / files(log)[-1]
    whole = last.read_bytes()
    last.write_bytes(whole + whole[:300])
    assert log.compact(log.end) == 3
    last.write_bytes(whole)
    assert published(log) == [(n, n) for n in range(6)]


def test_rows_keep_the_times_of_their_packs(tmp_path: Path) -> None:
    log = fresh(tmp_path)
    for number, moment in enumerate((5, 5, 8, 9, 9, 9, 20, 21, 22, 23)):
        log.append(events=prices(number, number), moment=moment)
    wanted = [5] * 4 + [8] * 2 + [9] * 6 + [20] * 2 + [21] * 2 + [22] * 2 + [23] * 2
    for rows in (4, 100):
        log.compact(log.end, rows=rows)
        for reader in (log, Log.open(log.folder)):
            for first in range(20):
                for end in range(first, 21):
                    found = [m for _, table in reader.events(first, end) for m in moments(table)]
                    assert found == wanted[first:end]

    def second(kind: str, first: int, table: pa.Table) -> list[int]:
        return [2 - first] if first <= 2 < first + table.num_rows else []

    assert erase_rows(log, second, "asked for") == 1
    found = [each for _, table in Log.open(log.folder).events(0) for each in moments(table)]
    assert found == [*wanted[:2], *wanted[3:]]
