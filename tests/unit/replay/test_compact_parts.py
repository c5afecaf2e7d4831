"""Small parts become large ones; each pair is there once, whenever and by whomever it is read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tamis.errors import SparkError, StoreError
from tamis.files.lock import locked
from tamis.replay.compact_parts import compact
from tamis.replay.manifests import list_manifests, manifests, retire, sweep
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.spark.stream.notification_sink import WrittenParts, commit
from tests.unit.replay.notification_folder import Out


@pytest.fixture
def out(tmp_path: Path) -> Out:
    return Out(tmp_path / "out")


def test_the_parts_of_old_batches_become_one(out: Out) -> None:
    out.batches(*range(20))
    assert compact(out.path, keep=5, many=10, older=0.0) == 14
    out.check()
    assert (out.files(), out.files(DEAD)) == (6, 4)
    (merged, *rest) = manifests(out.path)
    assert (merged["batch"], merged["batches"], merged["notifications"]) == (14, 15, 45)
    assert [each["batch"] for each in rest] == [15, 16, 17, 18, 19]
    table = pq.read_table(out.path / NOTIFICATIONS / merged["parts"][0]["name"])
    assert table["sequence"].to_pylist() == sorted(table["sequence"].to_pylist()), "in order"
    assert compact(out.path, keep=5, many=10, older=0.0) == 0


def test_nothing_is_done_for_few_and_for_none(out: Out) -> None:
    assert compact(out.path) == 0
    out.batches(*range(14))
    before = sorted(list_manifests(out.path))
    assert compact(out.path, keep=5, many=10) == 0
    assert sorted(list_manifests(out.path)) == before
    commit(out.path, "job", {"query": None, "batch": None}, [])
    assert compact(out.path, keep=1, many=2, older=0.0) == 12, "what has no query is left alone"
    assert "job.json" in list_manifests(out.path)
    out.check()


def test_what_was_replaced_stays_for_a_while(out: Out) -> None:
    out.batches(*range(20))
    compact(out.path, keep=5, many=10)
    out.check()
    assert len(list_manifests(out.path)) == 21
    assert out.files() == 21
    assert sweep(out.path, 60.0) == [], "readers may still need them"
    assert out.files() == 21
    (merged,) = (out.path / "manifests").glob("*-merged.json")
    os.utime(merged, (time.time(), time.time() - 7200))
    assert retire(out.path) == 22
    assert (len(list_manifests(out.path)), out.files()) == (6, 6)
    out.check()


def _aged(out: Out, batch: int, seconds: float) -> None:
    merged = out.path / "manifests" / f"q-{batch:010d}-merged.json"
    os.utime(merged, (time.time(), time.time() - seconds))


def test_who_merges_often_removes_what_was_replaced_long_ago(out: Out) -> None:
    """The newest merge is always young: the age of an older one is that of what it replaced."""
    for turn in range(4):
        out.batches(*range(5 * turn, 5 * turn + 5))
        compact(out.path, keep=1, many=2)
    assert sorted(name for name in list_manifests(out.path) if "merged" in name) == [
        f"q-{batch:010d}-merged.json" for batch in (3, 8, 13, 18)
    ]
    assert retire(out.path) == 0
    _aged(out, 3, 7200.0)
    _aged(out, 8, 4000.0)
    assert retire(out.path) > 0
    left = {each["batch"] for each in list_manifests(out.path).values()}
    assert left == set(range(8, 20)), "what stands for all up to 8 was replaced just now"
    assert "q-0000000008-merged.json" in list_manifests(out.path)
    assert "q-0000000008-8.json" not in list_manifests(out.path)
    out.check()
    sweep(out.path, 60.0)
    out.check()


@pytest.mark.slow
def test_again_and_again(out: Out) -> None:
    written = 0
    for number in range(300):
        out.batches(number)
        before = {each.name for each in (out.path / NOTIFICATIONS).iterdir()}
        compact(out.path, keep=3, many=4, older=0.0)
        for part in (out.path / NOTIFICATIONS).iterdir():
            if part.name not in before:
                written += pq.read_metadata(part).num_rows
    out.check()
    assert out.files() < 20
    assert written < 9 * 900, "a row is written a few times, not each time"
    assert manifests(out.path)[0]["batches"] + len(manifests(out.path)) - 1 == 300


def test_large_parts_and_other_columns_stay_apart(out: Out) -> None:
    out.batches(*range(6))
    for number in range(6, 10):
        assert out.batch(number, kept=True)
    out.batches(*range(10, 16))
    compact(out.path, keep=1, many=2, older=0.0)
    out.check()
    assert out.files() == 4
    large = Out(out.path.with_name("large"), rows=50)
    large.batches(*range(10))
    compact(large.path, keep=1, many=2, whole=50, older=0.0)
    large.check()
    assert large.files() == 10, "they are large enough"
    assert len(manifests(large.path)) == 2


def test_queries_are_merged_each_for_itself(out: Out) -> None:
    out.batches(*range(10))
    for number in range(20, 26):
        assert out.batch(number, query="other")
    compact(out.path, keep=2, many=3, older=0.0)
    out.check()
    assert sorted(each["query"] for each in manifests(out.path)) == ["other"] * 3 + ["q"] * 3


def test_a_batch_that_is_run_again_is_not_written_again(out: Out) -> None:
    out.batches(*range(20))
    compact(out.path, keep=5, many=10, older=0.0)
    for number in range(15, 20):
        assert not out.batch(number), "its manifest is there"
    out.check()
    with pytest.raises(SparkError, match="batch 14 is an old one"):
        out.batch(14)
    assert sweep(out.path, 0.0) == [], "what it wrote is gone"
    out.check()
    out.batches(20)
    out.check()


def test_a_batch_that_ended_elsewhere_before_is_refused(out: Out) -> None:
    """Its offsets were lost or set back; what it has now is in part what is there."""
    out.batches(*range(3))
    part = out._part(NOTIFICATIONS, {"subscription": [1]}, 200)
    facts = {"query": "q", "batch": 2, "offsets": [{"sequence": 250, "version": 3}]}
    with pytest.raises(SparkError, match=r"batch 2 was written before.*come twice"):
        commit(out.path, "q-0000000002-other", facts, [WrittenParts([part])])
    assert not (out.path / part["folder"] / part["name"]).exists()
    out.check()


def test_a_manifest_names_only_what_is_there(out: Out) -> None:
    out.batches(0)
    part = out._part(NOTIFICATIONS, {"subscription": [1]}, 100)
    facts = {"query": "q", "batch": 1, "offsets": [{"sequence": 100, "version": 3}]}
    gone = {"folder": NOTIFICATIONS, "name": "part-gone.parquet", "rows": 1}
    with pytest.raises(SparkError, match=r"part-gone\.parquet: is not there"):
        commit(out.path, "q-0000000001-1", facts, [WrittenParts([part, gone])])
    out.check()
    commit(out.path, "q-0000000001-1", facts, [WrittenParts([part])])
    assert len(manifests(out.path)) == 2


def test_a_stream_sweeps_only_what_is_its_own(out: Out) -> None:
    out.batches(0)
    parts, found = out.path / NOTIFICATIONS, out.path / "manifests"
    others = [parts / "part-job-0-0.parquet", parts / "part-qq-1.parquet", found / ".job.1"]
    own = [parts / "part-q-1.parquet", out.path / DEAD / "part-q-2.parquet", found / ".q-3.4"]
    (out.path / DEAD).mkdir()
    for each in (*others, *own):
        each.touch()
    assert sorted(sweep(out.path, 0.0, query="q")) == sorted(own[:2])
    assert all(each.exists() for each in others)
    assert not any(each.exists() for each in own)
    out.check()


def test_one_at_a_time(out: Out) -> None:
    out.batches(*range(20))
    with locked(out.path / "manifests" / "compact.lock"):
        assert compact(out.path, keep=5, many=10) == 0
    assert compact(out.path, keep=5, many=10) == 14
    names = [part["name"] for part in manifests(out.path)[0]["parts"]]
    assert all(name.startswith("part-q-") for name in names), "they know their query"


def test_a_folder_of_a_newer_tamis_is_refused(out: Out) -> None:
    out.batches(0)
    (path,) = (out.path / "manifests").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3}))
    with pytest.raises(StoreError, match="use the newer tamis"):
        manifests(out.path)
