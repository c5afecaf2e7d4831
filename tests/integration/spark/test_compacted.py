"""Parts that were merged are read as before, and a stream that goes on writes nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tamis.replay.compact_parts import compact
from tamis.replay.manifests import manifests, sweep
from tests.integration.spark.test_readers import _uncommit
from tests.integration.spark.test_stream import Story, _found, _run


def test_a_stream_goes_on_in_a_folder_that_was_merged(spark: SparkSession, tmp_path: Path) -> None:
    story, found = Story(tmp_path / "log", seed=21, text=False), tmp_path / "found"
    story.write(60)
    _run(spark, story, tmp_path, most=60)
    before = len(manifests(found))
    assert before >= 6
    assert compact(found, keep=2, many=2, older=0.0) == before - 3
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)

    # Killed between the commit of the sink and that of Spark: the last batch is run again.
    _uncommit(tmp_path)
    story.write(20)
    _run(spark, story, tmp_path, most=60)
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    compact(found, keep=1, many=2, older=0.0)
    sweep(found, 0.0)
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    dead = spark.read.format("tamis_notifications").option("kind", "dead").load(str(found))
    assert sorted(row["sequence"] for row in dead.collect()) == sorted(story.dead)
    (merged, last) = manifests(found)
    assert merged["batches"] == last["batch"]
    named = {(part["folder"], part["name"]) for each in (merged, last) for part in each["parts"]}
    there = {(each.parent.name, each.name) for each in found.glob("*/part-*.parquet")}
    assert named == there, "the folders may be read by any program"
    assert all(name.startswith(f"part-{last['query']}-") for _, name in named), "they know whose"


def test_a_checkpoint_that_was_set_back_far_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    story, found = Story(tmp_path / "log", seed=22, text=False), tmp_path / "found"
    story.write(40)
    _run(spark, story, tmp_path, most=60)
    compact(found, keep=1, many=2, older=0.0)
    for folder in ("offsets", "commits"):
        for each in (tmp_path / "found-checkpoint" / folder).iterdir():
            if int(each.name.strip(".").removesuffix(".crc")) > 0:
                each.unlink()
    with pytest.raises(Exception, match=r"batch 1 is an old one"):
        _run(spark, story, tmp_path, most=60)
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
