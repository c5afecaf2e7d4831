"""What the sink does by itself, before and after Spark runs its tasks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from tamis.errors import SparkError, StoreError
from tamis.replay.manifests import manifests
from tamis.replay.parts import PartWriter
from tamis.spark.stream.notification_sink import NotificationsDataSource


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """As Spark has it while the first batch runs."""
    folder = tmp_path / "checkpoint"
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": "q"}), encoding="utf-8")
    _offset(folder, 0, 10)
    return folder


def _offset(checkpoint: Path, batch: int, sequence: int) -> None:
    offset = json.dumps({"sequence": sequence, "version": 3})
    (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}", encoding="utf-8")


def _source(out: str, checkpoint: Path | str) -> NotificationsDataSource:
    return NotificationsDataSource({"path": out, "checkpointlocation": str(checkpoint)})


def _rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sequence": list(numbers), "subscription": list(numbers)})


def test_workers_with_another_folder_to_work_in(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = _source("out", "checkpoint").streamWriter(StructType(), overwrite=False)
    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path / "worker")
    parts = writer.write(iter([_rows(1, 2)]))
    writer.commit([parts], 0)
    assert [each["notifications"] for each in manifests(tmp_path / "out")] == [2]
    assert not list((tmp_path / "worker").iterdir())


def test_parts_are_known_by_their_query(tmp_path: Path, checkpoint: Path) -> None:
    writer = _source(str(tmp_path / "out"), checkpoint).streamWriter(StructType(), overwrite=False)
    (part,) = writer.write(iter([_rows(1)])).parts
    assert part["name"].startswith("part-q-")


def test_the_offsets_of_a_batch_are_on_disk_before_its_manifest(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a power cut could leave a batch that was written, and Spark would cut it anew."""
    writer = _source(str(tmp_path / "out"), checkpoint).streamWriter(StructType(), overwrite=False)
    parts = writer.write(iter([_rows(1)]))
    synced: list[Path] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink())
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    writer.commit([parts], 0)
    manifest = next(at for at, path in enumerate(synced) if path.parent.name == "manifests")
    needed = [checkpoint / "offsets" / "0", checkpoint / "offsets", checkpoint / "metadata"]
    assert {*needed, checkpoint} <= set(synced[:manifest])


def test_a_batch_whose_offsets_were_set_back_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    writer = _source(str(tmp_path / "out"), checkpoint).streamWriter(StructType(), overwrite=False)
    writer.commit([writer.write(iter([_rows(1)]))], 0)
    writer.commit([writer.write(iter([_rows(1)]))], 0)  # run again, as it was
    _offset(checkpoint, 0, 12)
    with pytest.raises(SparkError, match="batch 0 was written before"):
        writer.commit([writer.write(iter([_rows(1, 11)]))], 0)
    (manifest,) = manifests(tmp_path / "out")
    assert manifest["notifications"] == 1
    assert len(list((tmp_path / "out" / "notifications").iterdir())) == 1


@pytest.mark.slow
def test_large_rows_do_not_wait_for_many(tmp_path: Path) -> None:
    """A million rows are written together, but not of a hundred kilobytes each."""
    part = PartWriter(tmp_path, "part-a.parquet", as_is=True)
    letter = pa.table({"sequence": [1], "raw": ["x" * 100_000]})
    waited = 0
    for _ in range(2_000):
        part.write(letter)
        waited = max(waited, sum(each.nbytes for each in part._waiting))
    assert waited < 1 << 27
    part.close()
    assert pq.ParquetFile(tmp_path / "part-a.parquet").metadata.num_rows == 2_000


def test_lists_are_written_with_a_dictionary(tmp_path: Path) -> None:
    part = PartWriter(tmp_path, "part-a.parquet", as_is=True)
    ids, tags = list(range(1000)), [[f"tag-{i % 7}", "oak"] for i in range(1000)]
    part.write(pa.table({"sequence": ids, "subscription": ids, "tags": tags}))
    part.close()
    facts = pq.ParquetFile(tmp_path / "part-a.parquet").metadata.row_group(0)
    columns = {facts.column(at).path_in_schema: facts.column(at) for at in range(3)}
    assert "BYTE_STREAM_SPLIT" in columns["subscription"].encodings
    assert columns["tags.list.element"].has_dictionary_page
    assert columns["tags.list.element"].statistics is not None


_PART = '{"folder": "..", "name": "a.parquet", "rows": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format": 2, "wri',
        "{}",
        "[]",
        "[" * 100_000,
        f'{{"query": null, "written": 0, "parts": [{_PART}]}}',
        '{"query": null, "written": 0, "parts": [5]}',
        '{"query": null, "written": 0, "parts": [{"folder": "dead", "rows": 1}]}',
        '{"query": null, "written": [0], "parts": []}',
        '{"query": "q", "batch": {}, "written": 0, "parts": []}',
        '{"query": ["q"], "batch": 1, "written": 0, "parts": []}',
    ],
)
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q-0000000000-x.json").write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"q-0000000000-x\.json: is damaged"):
        manifests(tmp_path)


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path, checkpoint: Path) -> None:
    writer = _source(str(tmp_path / "out"), checkpoint).writer(StructType(), overwrite=False)
    writer.commit([writer.write(iter([_rows(1)]))])
    source = NotificationsDataSource({"path": str(tmp_path / "out")})
    reader = source.reader(StructType())
    (partition,) = reader.partitions()
    Path(str(partition.value)).write_bytes(b"PAR1 no more")
    with pytest.raises(SparkError, match=r"part-[0-9a-f]+\.parquet: cannot be read"):
        list(reader.read(partition))


def test_where_there_is_nothing_to_read(tmp_path: Path, checkpoint: Path) -> None:
    with pytest.raises(SparkError, match="nowhere: there is no folder of that name"):
        NotificationsDataSource({"path": str(tmp_path / "nowhere")}).schema()
    writer = _source(str(tmp_path / "out"), checkpoint).writer(StructType(), overwrite=False)
    writer.commit([writer.write(iter([]))])
    with pytest.raises(SparkError, match="out: has no parts of notifications yet"):
        NotificationsDataSource({"path": str(tmp_path / "out")}).schema()
