"""After a power cut at any moment of a stream on Spark, the next start goes on.

The log, the versions, the sink and Spark's checkpoint lose power together: Spark's JVM is recorded
like any other process. Each state is then run to its end, in the session that the tests share.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tamis.spark.stream.stream import Stream, check_written
from tamis.store import Log
from tests.campaign import SEED, campaign
from tests.power_loss import stream_program
from tests.power_loss.conftest import recorder  # noqa: F401 - a fixture
from tests.power_loss.disk import power_cuts, recorded_run
from tests.power_loss.restart import CAMPAIGN, cuts, start_machine_again
from tests.power_loss.small_world import began, check_notifications, some_changes, some_events

_CUTS_OF_A_RUN = 25


def test_power_cut_at_any_moment(spark: SparkSession, recorder: Path, tmp_path: Path) -> None:  # noqa: F811
    most = cuts(100) // 50
    with campaign(CAMPAIGN, "stream") as running:
        seed = 1000 * SEED
        while running.tried < most:
            seed += 1
            start = ("first", "latest")[seed % 2]
            place, record = tmp_path / "place", tmp_path / "record"
            place.mkdir()
            program = [sys.executable, "-m", stream_program.__name__, str(place), str(seed), start]
            recorded_run(program, recorder, place, record)
            shutil.rmtree(place)
            left = min(_CUTS_OF_A_RUN, most - running.tried)
            for acknowledged in power_cuts(record, place, place, running.draw, left):
                running.tried += 1
                _check(spark, place, start, acknowledged, running.draw)
            shutil.rmtree(place)
            record.unlink()


def _check(
    spark: SparkSession,
    place: Path,
    start: str,
    acknowledged: list[dict[str, Any]],
    draw: random.Random,
) -> None:
    if not acknowledged:
        return
    known = {name: value for each in acknowledged for name, value in each.items()}
    log = Log.open(place / "log")
    start_machine_again(log)
    assert log.end >= known["end"]
    job = stream_program.stream_job(place, start, trigger=None)
    with Stream(job, spark=spark) as stream:
        check_written(job.out, job.checkpoint)
        stream.prepare()
        log.append(events=some_events(draw), changes=some_changes(draw))
        begun = known.get("begun", 0 if start == "first" else began(log) or log.end)
        stream.start()
        assert stream._query is not None
        assert stream._query.awaitTermination(300)
        stream.check()
    check_notifications(log, job.out, begun)
