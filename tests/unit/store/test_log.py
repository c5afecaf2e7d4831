"""The log: rows are read back in the order of their appends; other folders are refused."""

from __future__ import annotations

import json
import os
import pickle
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import SchemaError, StoreError
from tamis.model.schema import Schema
from tamis.store import Log, SubscriptionSnapshot, appended, cancel, renew, subscribe
from tamis.store.document import signed
from tamis.store.segment_files import SegmentFiles
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
    assert [(each.first, each.end, each.kind) for each in log.boundaries(1, 4)] == [
        (0, 2, "events"),
        (2, 3, "changes"),
        (3, 4, "events"),
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


def test_a_folder_whose_time_repeats(tmp_path: Path, small_segments: None) -> None:
    """Readers learn of appends from the head, not from the time of the folder."""
    one = fresh(tmp_path)
    other = Log.open(one.folder)
    segments = one.folder / "segments"
    for turn in range(12):
        moment = segments.stat().st_mtime_ns
        one.publish(prices(turn))
        os.utime(segments, ns=(moment, moment))
        assert other.end == turn + 1
        assert published(other, turn) == [(turn, turn)]


def test_the_folder_is_listed_only_for_new_segments(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.publish(prices(0))
    assert published(log) == [(0, 0)]
    monkeypatch.setattr(SegmentFiles, "list_names", lambda self: pytest.fail("listed again"))
    assert [log.publish(prices(n)).start for n in range(1, 6)] == [1, 2, 3, 4, 5]
    assert log.end == 6


def test_threads_append_and_read(log: Log) -> None:
    got: list[range] = []

    def work() -> None:
        for n in range(20):
            mine = log.publish(prices(n, n))
            assert log.end >= mine.stop
            got.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
def test_no_events(log: Log, given: Any, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        log.publish(given)
    assert log.end == 0


def test_ids_of_the_other_kind(tmp_path: Path, log: Log) -> None:
    with pytest.raises(StoreError, match="'id' is int64, expected string, because the ids"):
        log.change(cancel([7]))
    with pytest.raises(StoreError, match="'text' or 'int64', not 'uuid'"):
        Log.create(tmp_path / "other", SCHEMA, "uuid")


# -- folders that are not a log --------------------------------------------------------------------


def test_a_log_is_not_made_twice(tmp_path: Path, log: Log) -> None:
    with pytest.raises(StoreError, match="there is a log already"):
        fresh(tmp_path)
    (log.folder / "tamis-log.json").unlink()
    log = fresh(tmp_path)
    assert log.end == 0
    log.publish(prices(1))
    (log.folder / "tamis-log.json").unlink()
    with pytest.raises(StoreError, match=r"has segments but no tamis-log\.json"):
        fresh(tmp_path)


def test_a_bad_schema_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SchemaError):
        Log.create(tmp_path / "log", {"attributes": {"price": "nonsense"}})
    assert not (tmp_path / "log").exists()


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
        ({"format": 3}, "has format 3, and this tamis reads formats up to 2"),
        ({"format": "x"}, "the format is 'x'"),
        ({"ids": "uuid"}, "lacks 'schema' or 'ids'"),
        ({"schema": None}, "lacks 'schema' or 'ids'"),
        ({"log": None}, "lacks 'log', the identity"),
        ({"log": "../../x"}, "lacks 'log', the identity"),
    ],
)
def test_newer_and_damaged_documents(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    path = fresh(tmp_path).folder / "tamis-log.json"
    path.write_text(json.dumps(signed(json.loads(path.read_text()) | changed)))
    with pytest.raises(StoreError, match=says):
        Log.open(path.parent)


def test_documents_that_are_damaged(log: Log) -> None:
    for text, says in (("{", "not valid JSON"), ("[]", "not hold a JSON object")):
        (log.folder / "tamis-log.json").write_text(text)
        with pytest.raises(StoreError, match=says):
            Log.open(log.folder)


def test_a_log_without_its_segments(log: Log) -> None:
    (log.folder / "segments").rmdir()
    with pytest.raises(StoreError, match="'segments' is missing"):
        Log.open(log.folder)
    with pytest.raises(StoreError, match="No such file"):
        log.publish(prices(1))


def test_rows_of_one_pack_are_there_together(log: Log) -> None:
    got = log.append(events=prices(1, 2), changes=subscribe(["ann"], ["price < 6"]))
    assert (got.events, got.changes, got.schemas) == (range(2), range(2, 3), range(3, 3))
    assert published(log) == [(0, 1), (1, 2)]
    assert log.changes(0)["sequence"].to_pylist() == [2]


def test_a_subscribe_without_an_id_gets_its_number(tmp_path: Path) -> None:
    log = fresh(tmp_path, "int64")
    none: list[int | None] = [None, 40, None]
    table = subscribe(pa.array(none, pa.int64()), ["price < 6"] * 3)
    got = log.append(events=prices(1, 2), changes=table)
    assert got.changes == range(2, 5)
    assert log.changes(0)["id"].to_pylist() == [2, 40, 4]


def test_details_of_a_change_are_kept(log: Log) -> None:
    table = subscribe(["ann", "bob"], ["price < 6"] * 2)
    table = table.append_column("owner", pa.array(["x", None]))
    table = table.append_column("nonce", pa.array([b"\x00\xff", None], pa.binary()))
    log.change(table)
    log.change(cancel(["bob"]))
    rows = log.changes(0, details=True).to_pylist()
    assert [(row["owner"], row["nonce"]) for row in rows] == [
        ("x", b"\x00\xff"),
        (None, None),
        (None, None),
    ]
    assert log.changes(0).column_names == ["sequence", "kind", "id", "condition", "until"]


def test_rows_are_read_by_the_schema_of_their_number(log: Log) -> None:
    before = Schema.from_dict(log.schema)
    log.publish(prices(1))
    wider = before.create_attribute("size", "integer")
    got = log.append(events=prices(2), schema=wider)
    assert got.schemas == range(2, 3)
    log.publish(prices(3))
    for each in (log, Log.open(log.folder)):
        assert [each.schema_at(n) for n in range(5)] == [before, before, before, wider, wider]
        assert each.schema == wider.to_dict()
        assert each.counts(0) == (3, 0)
    with pytest.raises(SchemaError):
        log.append(schema=before)


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
