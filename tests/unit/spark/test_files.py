"""Files in shares, parts on disk, and what an engine has decided before workers open it."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Engine, Schema
from tamis.engine.warm_start import plan_for
from tamis.errors import SparkError, StoreError
from tamis.replay.parquet_events import RowRange, parquet_files, row_shares
from tamis.replay.parts import PartWriter
from tamis.spark.events.past_files import PastFiles, layouts
from tamis.spark.jobs.generate_tables import _write, draft_folder, table_files
from tamis.spark.jobs.match_files import check_given
from tamis.spark.runtime.engine_folders import engine_folders, laid_out, mentioned
from tamis.spark.runtime.scratch_folder import scratch_folder
from tests.running import run_script

SCHEMA = Schema.from_dict({"attributes": {"price": "decimal", "kind": "text", "n": "integer"}})


def write(path: Path, rows: int, group: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"n": np.arange(rows)}), path, row_group_size=group)


def groups(*sizes: int) -> list[RowRange]:
    firsts = np.cumsum([0, *sizes]).tolist()
    return [RowRange(0, at, 0, size, firsts[at]) for at, size in enumerate(sizes)]


def test_rows_are_numbered_in_the_order_of_the_files(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", 50)
    write(tmp_path / "a" / "x.parquet", 250)
    write(tmp_path / "_temporary" / "y.parquet", 9)
    write(tmp_path / "c.parquet", 0)
    there = parquet_files(tmp_path)
    assert [Path(file).name for file in there.files] == ["x.parquet", "b.parquet", "c.parquet"]
    assert [(rows.file, rows.group, rows.first) for rows in there.groups] == [
        (0, 0, 0),
        (0, 1, 100),
        (0, 2, 200),
        (1, 0, 250),
    ]
    assert there.rows == 300
    assert parquet_files(tmp_path / "b.parquet").rows == 50
    assert parquet_files(str(tmp_path / "*.parquet")).rows == 50
    assert parquet_files(str(tmp_path / "**" / "x*.parquet")).rows == 250


def test_files_with_other_columns_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 5)
    parquet.write_table(pa.table({"kind": ["x"]}), tmp_path / "b.parquet")
    write(tmp_path / "c.parquet", 5)
    assert parquet_files(tmp_path).schema_of == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "why"),
    [("nothing", "no such file or folder"), ("*.parquet", "no parquet files"), (".", "no parquet")],
)
def test_nothing_to_read(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=why):
        parquet_files(f"{tmp_path}/{name}")


def test_values_that_only_folders_have_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "kind=oak" / "x.parquet", 5)
    with pytest.raises(SparkError, match="only the folder 'kind=oak' has"):
        layouts(parquet_files(tmp_path), SCHEMA)
    write(tmp_path / "other" / "day=3" / "x.parquet", 5)  # no attribute
    write(tmp_path / "other" / "n=3" / "x.parquet", 5)  # a column as well
    assert len(layouts(parquet_files(tmp_path / "other"), SCHEMA)) == 1


def test_files_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no parquet at all")
    with pytest.raises(StoreError, match=r"a\.parquet: is not a parquet file that can be read"):
        parquet_files(tmp_path)
    write(path, 300)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 3)
        file.write(b"\xff" * 64)
    events = PastFiles(parquet_files(path), SCHEMA).sample()
    shares_of = map(events.chunks, range(len(events.shares)))
    with pytest.raises(StoreError, match=r"a\.parquet: cannot be read: "):
        list(chain.from_iterable(shares_of))


def test_what_should_hold_attributes_has_to_be_a_struct(tmp_path: Path) -> None:
    schema = Schema.from_dict({"attributes": {"n": "integer", "seller.rating": "integer"}})
    path = tmp_path / "a.parquet"
    small = pa.array([{"rating": 3}], pa.struct([("rating", pa.uint8())]))  # no type of Spark's
    parquet.write_table(pa.table({"n": [1], "seller": small}), path)
    (found_there,) = layouts(parquet_files(tmp_path), schema)
    assert ("seller.rating", ("seller", "rating")) in (found_there.attributes or ())
    parquet.write_table(pa.table({"n": [1], "seller": ["Ann"]}), path)
    with pytest.raises(SparkError, match=r"a\.parquet: the column 'seller' is string, but 'seller"):
        layouts(parquet_files(tmp_path), schema)


@pytest.mark.parametrize(
    "sizes",
    [(1,), (5_000_000,), (100, 200, 300), (40_000,) * 30, (1_000_000, 1, 1_000_000, 7, 300_000)],
)
@pytest.mark.parametrize("cores", [1, 2, 16])
def test_each_row_has_one_reader(sizes: tuple[int, ...], cores: int) -> None:
    dealt = row_shares(groups(*sizes), cores)
    all_rows = [rows for share in dealt for rows in share]
    ends = [rows.first + rows.stop - rows.start for rows in all_rows]
    assert all_rows[0].first == 0
    assert ends[-1] == sum(sizes)
    assert all(rows.first == end for (end, rows) in zip(ends, all_rows[1:], strict=False))
    assert all(rows.stop <= sizes[rows.group] for rows in all_rows)
    assert row_shares([], cores) == []
    counts = [sum(rows.stop - rows.start for rows in share) for share in dealt]
    assert max(counts) <= 2 * max(sum(sizes) / len(dealt), 1 << 14)
    if sum(sizes) > cores << 16:
        assert len(dealt) >= cores
    assert all(one[-1].first < two[0].first for one, two in pairwise(dealt))


def test_a_part_is_there_when_it_is_closed_and_gone_when_it_is_given_up(tmp_path: Path) -> None:
    part = PartWriter(tmp_path / "notifications", "part-1.parquet")
    part.write(pa.table({"sequence": [1, 2], "subscription": ["a", "b"]}))
    part.write(pa.table({"sequence": [2], "subscription": ["c"]}))
    assert part.close() == {"folder": "notifications", "name": "part-1.parquet", "rows": 3}
    table = parquet.read_table(tmp_path / "notifications" / "part-1.parquet")
    assert table.to_pydict() == {"sequence": [1, 2, 2], "subscription": ["a", "b", "c"]}
    part = PartWriter(tmp_path / "dead", "part-1.parquet")
    part.write(pa.table({"sequence": np.arange(1 << 21)}))
    assert list((tmp_path / "dead").iterdir())
    part.discard()
    assert not list((tmp_path / "dead").iterdir())


def test_what_conditions_ask_for() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe('price < 5 and kind like "%oak%"')
    assert mentioned(engine) == {"price", "kind"}
    engine.subscribe("n missing")
    assert mentioned(engine) == {"price", "kind", "n"}
    assert mentioned(Engine(SCHEMA)) == set()


def test_what_residuals_ask_for() -> None:
    """Parts that are not indexed are verified, so their attributes are needed too."""
    names = [f"{letter}{number}" for letter in "ab" for number in range(9)]
    engine = Engine(Schema.from_dict({"attributes": dict.fromkeys([*names, "x", "y"], "integer")}))
    pairs = " and ".join(f"(a{number} = 1 or b{number} = 1)" for number in range(8))
    engine.subscribe(f"{pairs} and (a8 = 1 or b8 = 1 or x < @y)")
    assert mentioned(engine) == {*names, "x", "y"}


def test_an_engine_is_laid_out_by_events(tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    assert laid_out(engine)  # nothing to lay out
    engine.subscribe("price < 5")
    engine.save(tmp_path / "before")
    assert not laid_out(Engine.open(tmp_path / "before"))
    plan_for(engine, pa.table({"price": [1.0, float("nan"), 9.0]}))
    engine.save(tmp_path / "after")
    assert laid_out(Engine.open(tmp_path / "after"))
    other = Engine(SCHEMA, "naive")  # which has nothing to decide
    other.subscribe("price < 5")
    assert laid_out(other)


def test_folders_of_subscriptions(tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    engine.save(tmp_path / "engine")
    assert engine_folders(tmp_path / "engine") == [tmp_path / "engine"]
    with pytest.raises(SparkError, match="no folder of that name"):
        engine_folders(tmp_path / "nothing")
    write(tmp_path / "events.parquet", 3)
    check_given(tmp_path / "events.parquet", tmp_path / "engine", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(SparkError, match="is a file, and not a folder"):
        check_given(tmp_path / "events.parquet", tmp_path / "engine", tmp_path / "events.parquet")


def test_pieces_of_a_table() -> None:
    cut = table_files("events", 10, 4)
    assert [(each.first, each.rows) for each in cut] == [(0, 2), (2, 3), (5, 2), (7, 3)]
    assert [each.name for each in table_files("events", 2, 9)] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    assert [each.rows for each in table_files("events", 0, 3)] == [0]
    with pytest.raises(SparkError, match="files 1 or more"):
        table_files("events", 3, 0)


def test_what_was_not_completed_is_begun_anew(tmp_path: Path) -> None:
    def begin(part: str, *, fails: bool = False) -> None:
        with draft_folder(tmp_path, ["events", "schema"]) as draft:
            (draft / "events").mkdir()
            (draft / "events" / part).touch()
            (draft / "schema").touch()
            assert not (tmp_path / "events").exists()
            if fails:
                raise RuntimeError("no")

    (tmp_path / "mine").touch()
    with pytest.raises(RuntimeError):
        begin("a", fails=True)
    assert [each.name for each in tmp_path.rglob("*")] == ["mine"]
    begin("b")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["b", "events", "mine", "schema"]
    with pytest.raises(SparkError, match="holds events already"):
        begin("c")
    assert (tmp_path / "events" / "b").exists()


def test_what_somebody_who_was_killed_left_goes(tmp_path: Path) -> None:
    begin = "import os; from tamis.spark.jobs.generate_tables import draft_folder\n"
    killed = (
        f"with draft_folder({str(tmp_path)!r}, ['events']) as draft:\n (draft / 'events').touch()\n"
    )
    assert run_script(f"{begin}{killed} os._exit(9)", check=False).returncode == 9
    assert list(tmp_path.rglob("events"))
    with draft_folder(tmp_path, ["events"]) as draft:
        assert list(tmp_path.iterdir()) == [draft]
        (draft / "events").touch()
    assert [each.name for each in tmp_path.iterdir()] == ["events"]


def test_a_full_disk_is_reported_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "part-0.parquet"
    table = pa.table({"n": np.random.default_rng(0).integers(0, 1 << 60, 1 << 16)})
    with full_disk(), pytest.raises(StoreError, match=r"part-0\.parquet: cannot be written: File"):
        _write(table, path)
    assert not list(tmp_path.iterdir())
    part = PartWriter(tmp_path, "part-1.parquet")
    part.write(table)
    with full_disk(), pytest.raises(StoreError, match=r"part-1\.parquet: cannot be written: File"):
        part.close()
    part.discard()
    assert not list(tmp_path.iterdir())


@contextmanager
def full_disk() -> Iterator[None]:
    """Files become no larger than this, which is what comes nearest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_scratch_folders_of_the_dead_are_removed(tmp_path: Path) -> None:
    """A lock inside says that somebody lives; what has none is not known, and stays."""
    begin = "import time; from pathlib import Path\n"
    begin += "from tamis.spark.runtime.scratch_folder import scratch_folder\n"
    code = (
        f"{begin}with scratch_folder(Path({str(tmp_path)!r})): print(flush=True); time.sleep(600)"
    )
    left = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert left.stdout is not None
    left.stdout.readline()
    left.kill()
    left.wait()
    left.stdout.close()
    (abandoned,) = tmp_path.iterdir()
    (tmp_path / ".tamis-unknown").mkdir()
    with scratch_folder(tmp_path) as first, scratch_folder(tmp_path) as second:
        assert not abandoned.exists()
        assert first.is_dir()
        assert second.is_dir()
    assert [each.name for each in tmp_path.iterdir()] == [".tamis-unknown"]
