"""Streams over logs that are damaged, or that hold what no publisher could send any more."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tamis.errors import SparkError
from tamis.replay.manifests import manifests
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, segment_files, subscribe
from tamis.store.pack import EVENTS, LOST, Section, encode_table
from tests.schemas import one_type
from tests.unit.cli.calls import Capture, run

SCHEMA = one_type("event", {"price": "integer!", "kind": "text"})


def _run(spark: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Run the stream of a log to its end; gives all notifications and dead letters."""
    out = folder / "out"
    job = StreamJob(folder / "log", folder / "index", out, out / "checkpoint", trigger=None)
    with Stream(job, spark=spark) as stream:
        stream.start()
        assert stream._query is not None
        try:
            assert stream._query.awaitTermination(300)
        finally:
            stream.check()
    found: dict[str, list[dict[str, Any]]] = {"notifications": [], "dead": []}
    for part in (part for manifest in manifests(out) for part in manifest["parts"]):
        rows = parquet.read_table(out / part["folder"] / part["name"]).to_pylist()
        found[part["folder"]] += rows
    return found


def _numbers(found: dict[str, list[dict[str, Any]]]) -> list[int]:
    return sorted(each["sequence"] for each in found["notifications"])


def test_a_damaged_segment_stops_a_stream_until_somebody_skips_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(segment_files, "MOST", 1)  # a segment for each pack
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(subscribe(["low"], ["price < 5"]))
    log.publish({"price": [1, 2]})
    log.publish({"price": [3, 3, 3]})
    log.publish({"price": [4]})
    segment = sorted((log.folder / "segments").iterdir())[-2]
    damaged = bytearray(segment.read_bytes())
    damaged[-200] ^= 1
    segment.write_bytes(damaged)
    with pytest.raises(SparkError) as stopped:
        _run(spark, tmp_path)
    said = str(stopped.value)
    assert segment.name in said
    assert "`tamis log repair --skip-lost` goes on without it" in said
    assert len(said.splitlines()) == 1
    assert run("log", "verify", str(log.folder)) == 1
    assert segment.name in capsys.readouterr().out
    assert run("log", "repair", str(log.folder), "--skip-lost", "--reason", "no backup") == 0
    assert run("log", "verify", str(log.folder)) == 0
    assert _numbers(_run(spark, tmp_path)) == [1, 2, 6]
    # The log says what was skipped, and why.
    again = Log.open(log.folder)
    (lost,) = [each for each in again.boundaries(0) if each.kind == LOST]
    assert (lost.first, lost.end) == (3, 6)
    assert isinstance(lost, Section)
    assert isinstance(again._files, segment_files.SegmentFiles)
    (record,) = again._files.read(lost).to_pylist()
    assert "no backup" in record["note"]


def _bad_offset() -> pa.Buffer:
    """Texts, the second of which would end far behind the last: a flipped bit."""
    content = bytearray(encode_table(pa.table({"json": ['{"price": 1}', '{"price": 2}']})))
    at = content.index(struct.pack("<3i", 0, 12, 24))
    content[at + 6] ^= 1
    return pa.py_buffer(bytes(content))


def _invalid_text() -> pa.Buffer:
    good = encode_table(pa.table({"json": ['{"price": 1}', '{"kind": "x"}']}))
    return pa.py_buffer(bytes(good).replace(b'"x"', b'"\xff"'))


def test_what_a_log_should_not_hold_becomes_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(subscribe(["low"], ["price < 5"]))
    numbers, structs = pa.table({"json": [5, 6]}), pa.table({"json": [{"a": 1}, {"a": 2}]})
    for content in (encode_table(numbers), encode_table(structs), _invalid_text(), _bad_offset()):
        assert isinstance(log._files, segment_files.SegmentFiles)
        log._files.append({EVENTS: (2, content)}, 0)  # as a tamis without checks has written it
    log.publish({"json": ['{"price": 3}']})
    found = _run(spark, tmp_path)
    assert _numbers(found) == [5, 9]
    dead = {each["sequence"]: each["reason"] for each in found["dead"]}
    assert sorted(dead) == [1, 2, 3, 4, 6, 7, 8]
    assert all(dead.values())
    assert "UTF-8" in dead[6]
