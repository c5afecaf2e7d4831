"""A stream on a real Spark, with everything around it. Run as: stream_program.py FOLDER SEED START

Events and subscription changes go on while the stream runs. Versions are compiled and swept, the
log and the parts of the sink are compacted. START is "first" or "latest": where the stream begins.
Each acknowledgement is a line in FOLDER/acknowledged, as in `log_program`.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from tamis.replay.compact_parts import compact
from tamis.replay.manifests import manifests, sweep
from tamis.spark.runtime.sessions import session
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, Versions, segment_files
from tests.power_loss.small_world import SCHEMA, began, compile_version, some_changes, some_events

_PATIENCE = 120.0  # seconds until the stream has to have done that many


def stream_job(place: Path, start: str, trigger: int | None = 0) -> StreamJob:
    """The stream of a place: always the same one."""
    options = {"partitions": "2"} | ({"startingSequence": start} if start == "latest" else {})
    index, out = place / "index", place / "out"
    checkpoint = place / "checkpoint"
    return StreamJob(
        place / "log", index, out, checkpoint, most=12, trigger=trigger, options=options
    )


def main(folder: str, seed: str, start: str) -> None:
    segment_files.MOST = 4  # packs, so that there are many segments
    draw, place = random.Random(int(seed)), Path(folder)
    noted = os.open(place / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    log = Log.create(place / "log", SCHEMA)

    def acknowledge(**what: object) -> None:
        os.write(noted, json.dumps(what).encode() + b"\n")

    def write(turns: int) -> None:
        for _ in range(turns):
            got = log.append(events=some_events(draw), changes=some_changes(draw)).changes
            acknowledge(end=got.stop)

    write(3)
    config: dict[str, Any] = {
        "spark.ui.enabled": False,
        "spark.sql.streaming.minBatchesToRetain": 2,
    }
    spark = session("local[2,4]", **config)
    out = place / "out"
    with Stream(stream_job(place, start), spark=spark) as stream:
        compile_version(log, Versions(place / "index"))
        stream.start()
        while start == "latest" and began(log) is None and stream.running:
            time.sleep(0.05)
        acknowledge(begun=began(log) or 0)
        end = time.monotonic() + _PATIENCE
        while len(manifests(out)) < 3 and stream.running:
            write(1)
            time.sleep(0.3)
        for _ in range(2):
            compile_version(log, Versions(place / "index"))
            write(2)
            log.compact(stream.look().sequence)
            compact(out, keep=2, many=2, older=0.0)
            Versions(place / "index").sweep(stream.look().version)
            done = stream.look().batches
            while stream.look().batches < done + 2 and stream.running and time.monotonic() < end:
                write(1)
                time.sleep(0.2)
        sweep(out, 60.0)
        stream.check()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
