"""The log: rows are read back in the order of their appends; other folders are refused."""

from __future__ import annotations

import json
import os
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import SchemaError, StoreError
from tamis.model.schema import Schema
from tamis.store import Log, Segment, SubscriptionSnapshot, appended, cancel, renew, subscribe
from tests.running import in_threads
from tests.unit.store.world import SCHEMA, files, fresh, prices, published


def test_events_and_changes_share_one_sequence(log: Log) -> None:
    assert log.publish(prices(5, 6)) == range(2)
    assert log.change(subscribe(["ann"], ["price < 6"])) == range(2, 3)
    assert log.publish(prices(7)) == range(3, 4)
    assert log.change(cancel(["ann", "bob"])) == range(4, 6)
    assert log.end == 6
    assert log.counts(0, 6) == (3, 3)
    assert log.counts(1) == (2, 3)
    assert published(log) == [(0, 5), (1, 6), (3, 7)]
    changes = log.changes(0)
    assert changes.column_names == ["sequence", "kind", "id", "condition", "until"]
    assert changes.column("sequence").to_pylist() == [2, 4, 5]
    assert log.boundaries(1, 4) == [
        Segment(0, 2, "events"),
        Segment(2, 1, "changes"),
        Segment(3, 1, "events"),
    ]


def test_ranges_are_cut_to_the_row(log: Log) -> None:
    log.publish(prices(*range(10)))
    log.change(subscribe(list("abcdef"), ["price < 6"] * 6))
    log.publish(prices(*range(16, 20)))
    for start in range(21):
        for end in range(start, 21):
            expected = [(n, n) for n in range(start, end) if not 10 <= n < 16]
            assert published(log, start, end) == expected
            changes = log.changes(start, end).to_pylist()
            assert [row["sequence"] for row in changes] == [
                n for n in range(start, end) if 10 <= n < 16
            ]
            assert all(row["id"] == "abcdef"[row["sequence"] - 10] for row in changes)
            assert log.counts(start, end) == (len(expected), len(changes))


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (2, 1), (0, 4), (4, None)])
def test_a_range_that_is_not_there(log: Log, start: int, end: int | None) -> None:
    log.publish(prices(1, 2, 3))
    for read in (log.events, log.changes, log.counts, log.boundaries):
        with pytest.raises(StoreError, match="the log ends at 3"):
            read(start, end)


def test_nothing_takes_no_number(log: Log) -> None:
    log.publish(prices(1))
    assert log.publish(prices()) == range(1, 1)
    assert log.change(cancel([])) == range(1, 1)
    assert len(files(log)) == 1
    assert log.changes(0).num_rows == 0
    assert log.changes(0).schema.field("until").type == pa.timestamp("us", "UTC")


def test_a_log_opened_again_and_sent_elsewhere(tmp_path: Path) -> None:
    log = fresh(tmp_path, "int64")
    log.change(subscribe([7], ["price < 6"]))
    for other in (Log.open(log.folder), pickle.loads(pickle.dumps(log))):
        assert (other.folder, other.schema, other.ids) == (log.folder, log.schema, "int64")
        assert Schema.from_dict(other.schema) == Schema.from_dict(SCHEMA)
        assert other.changes(0).column("id").to_pylist() == [7]


def test_other_readers_see_appends(tmp_path: Path) -> None:
    one = fresh(tmp_path)
    other = Log.open(one.folder)
    for turn in range(30):
        writer, reader = (one, other) if turn % 3 else (other, one)
        assert writer.publish(prices(turn)) == range(turn, turn + 1)
        assert (reader.end, writer.end) == (turn + 1, turn + 1)
    assert published(one) == published(other) == [(n, n) for n in range(30)]


def test_a_folder_time_with_coarse_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a folder's time has coarse steps, a listing that was just taken is not trusted."""
    monkeypatch.setattr("tamis.store.log._SETTLED", 600_000_000_000)
    one = fresh(tmp_path)
    other = Log.open(one.folder)
    segments = one.folder / "segments"
    for turn in range(5):
        moment = segments.stat().st_mtime_ns
        one.publish(prices(turn))
        os.utime(segments, ns=(moment, moment))
        assert other.end == turn + 1


@pytest.mark.parametrize("old", [True, False])
def test_who_reads_an_old_folder_or_appends_alone_lists_once(
    log: Log, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    log.publish(prices(1))
    if old:
        os.utime(log.folder / "segments", (1e9, 1e9))
        assert log.end == 1
    monkeypatch.setattr(Log, "_list", lambda self: pytest.fail("listed again"))
    if old:
        assert log.end == 1
        assert log.counts(0) == (1, 0)
    else:
        assert [log.publish(prices(n)).start for n in range(5)] == [1, 2, 3, 4, 5]


def test_threads_append_and_read(log: Log) -> None:
    got: list[range] = []

    def work() -> None:
        for n in range(20):
            mine = log.publish(prices(n, n))
            assert log.end >= mine.stop
            got.append(mine)

    in_threads(work, [()] * 4)
    assert sorted(each.start for each in got) == list(range(0, 160, 2))
    assert log.end == 160


def test_when_a_segment_was_appended(log: Log) -> None:
    before = datetime.now(UTC)
    log.publish(prices(1).replace_schema_metadata({"pandas": "something"}))
    ((_, table),) = log.events(0)
    assert before <= appended(table) <= datetime.now(UTC)
    with pytest.raises(StoreError, match="does not come from a log"):
        appended(prices(1))


def test_texts_and_odd_columns(log: Log) -> None:
    log.publish(pa.table({"json": ['{"price": 1}', "rubbish", None]}))
    coded = [pa.array(each).dictionary_encode() for each in (["a"], ["b", "a"], ["c", None])]
    log.publish(pa.table({"name": pa.chunked_array(coded)}))
    log.publish({"price": [1]})
    log.publish(pa.record_batch({"price": [2]}))
    tables = [table for _, table in log.events(0)]
    assert tables[0].column("json").to_pylist() == ['{"price": 1}', "rubbish", None]
    assert tables[1].column("name").to_pylist() == ["a", "b", "a", "c", None]
    assert tables[3].to_pylist() == [{"price": 2}]


def test_large_segments_are_mapped_and_outlive_their_file(log: Log) -> None:
    log.publish(prices(*range(100_000)))
    before = pa.total_allocated_bytes()
    ((_, table),) = log.events(10, 99_999)
    assert pa.total_allocated_bytes() - before < 100_000
    (log.folder / "segments" / files(log)[0]).unlink()
    assert table.column("price").to_pylist() == list(range(10, 99_999))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (5, "expected an Arrow table of events"),
        (pa.table({}), "no columns"),
        (pa.table([[1], [2]], names=["price", "price"]), "two columns named 'price'"),
    ],
)
def test_what_is_refused(tmp_path: Path, log: Log, given: Any, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        log.publish(given)
    with pytest.raises(StoreError, match="'id' is int64, expected string, because the ids"):
        log.change(cancel([7]))
    assert log.end == 0
    with pytest.raises(StoreError, match="'text' or 'int64', not 'uuid'"):
        Log.create(tmp_path / "other", SCHEMA, "uuid")
    with pytest.raises(SchemaError):
        Log.create(tmp_path / "other", {"attributes": {"price": "nonsense"}})
    assert not (tmp_path / "other").exists()


# -- folders that are not a log --------------------------------------------------------------------


def test_a_log_is_not_made_twice(tmp_path: Path, log: Log) -> None:
    with pytest.raises(StoreError, match="there is a log already"):
        fresh(tmp_path)
    (log.folder / "tamis-log.json").unlink()
    assert fresh(tmp_path).end == 0
    log.publish(prices(1))
    (log.folder / "tamis-log.json").unlink()
    with pytest.raises(StoreError, match=r"has segments but no tamis-log\.json"):
        fresh(tmp_path)


def test_folders_that_are_not_a_log(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such folder"):
        Log.open(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="the folder is empty"):
        Log.open(tmp_path)
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(StoreError, match=r"is not a log: .* only: photo\.jpg"):
        Log.open(tmp_path)
    with pytest.raises(StoreError, match="it is a file, not a folder"):
        Log.open(tmp_path / "photo.jpg")
    with pytest.raises(StoreError, match="a log cannot be created here"):
        Log.create(tmp_path / "photo.jpg", SCHEMA)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"format": 2}, "has format 2, and this tamis reads formats up to 1"),
        ({"format": "x"}, "the format is 'x'"),
        ({"ids": "uuid"}, "lacks 'schema' or 'ids'"),
        ({"schema": None}, "lacks 'schema' or 'ids'"),
        ("{", "not valid JSON"),
        ("[]", "not hold a JSON object"),
    ],
)
def test_newer_and_damaged_documents(tmp_path: Path, changed: Any, says: str) -> None:
    path = fresh(tmp_path).folder / "tamis-log.json"
    if isinstance(changed, dict):
        changed = json.dumps(json.loads(path.read_text()) | changed)
    path.write_text(changed)
    with pytest.raises(StoreError, match=says):
        Log.open(path.parent)


def test_a_log_without_its_segments(log: Log) -> None:
    (log.folder / "segments").rmdir()
    with pytest.raises(StoreError, match="'segments' is missing"):
        Log.open(log.folder)
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        _ = log.end
    with pytest.raises(StoreError, match="No such file"):
        log.publish(prices(1))


def test_segments_that_are_missing_or_damaged(log: Log) -> None:
    for n in range(3):
        log.publish(prices(n))
    assert log.end == 3
    segments = [log.folder / "segments" / name for name in files(log)]
    segments[0].write_bytes(segments[0].read_bytes()[:100])
    with pytest.raises(StoreError, match="is damaged or cannot be read"):
        published(log, 0, 1)
    segments[0].write_bytes(b"")
    with pytest.raises(StoreError, match="is damaged or cannot be read"):
        published(log, 0, 1)
    segments[1].unlink()
    with pytest.raises(StoreError, match="does not follow on sequence number 1"):
        published(log, 1, 3)
    with pytest.raises(StoreError, match="does not follow on sequence number 1"):
        Log.open(log.folder).publish(prices(4))
    (log.folder / "segments" / Segment(1, 1, "events").name).write_bytes(segments[2].read_bytes())
    log.publish(prices(4, 5))
    two = log.folder / "segments" / Segment(3, 2, "events").name
    two.write_bytes(segments[2].read_bytes())
    with pytest.raises(StoreError, match="it has 1 rows instead of 2"):
        published(log, 3)


def test_overlapping_segments_are_damage(log: Log) -> None:
    log.publish(prices(1, 2))
    log.publish(prices(3, 4))
    whole = log.folder / "segments" / files(log)[0]
    (whole.parent / Segment(1, 2, "events").name).write_bytes(whole.read_bytes())
    with pytest.raises(StoreError, match="is damaged"):
        _ = Log.open(log.folder).end


# -- leases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ids", "names"), [("text", ["a", "b", "c"]), ("int64", [1, 2, 3])])
def test_leases_run_out(tmp_path: Path, ids: str, names: list[Any]) -> None:
    log, snapshot = fresh(tmp_path, ids), SubscriptionSnapshot()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    hour = timedelta(hours=1)
    log.change(subscribe(names, ["price < 6"] * 3, [now, now + hour, None]))
    assert log.expire(snapshot, now - hour) == range(3, 3)
    log.change(renew(names[:1], now + 2 * hour))  # after the last time that `snapshot` looked
    assert log.expire(snapshot, now + hour) == range(4, 5)
    snapshot.fold(log.changes(snapshot.sequence), log.end)
    assert list(snapshot) == [names[0], names[2]]
    assert log.expire(snapshot, now + 9 * hour) == range(5, 6)
    assert log.expire(snapshot, now + 9 * hour) == range(6, 6)
    assert list(snapshot) == [names[2]]
    assert not snapshot.ignored
