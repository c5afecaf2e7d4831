"""A log, versions, a stream and its sink. Run as: store_program.py FOLDER SEED START TURNS

START is where the stream begins: "0" or "latest". Acknowledgements are as in `log_program`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from tamis.replay.compact_parts import compact
from tamis.replay.manifests import sweep
from tamis.spark.stream.checkpoint import mend_checkpoint
from tamis.spark.stream.progress import query_of
from tamis.store import Log, Versions, segment_files
from tests.power_loss.small_world import SCHEMA, compile_version, some_changes, some_events
from tests.power_loss.spark_model import StreamModel


def out_of(place: Path) -> Path:
    """The folder of notifications, in a folder that is new as well."""
    return place / "new" / "out"


def restarted(place: Path, start: str) -> StreamModel:
    """The stream of a place, after a start of the driver."""
    out, checkpoint = out_of(place), place / "checkpoint"
    mend_checkpoint(checkpoint, out)
    query = query_of(checkpoint)
    if query is not None:
        sweep(out, 0.0, query=query)
    return StreamModel(place / "log", place / "index", out, checkpoint, most=12, start=start)


def main(folder: str, seed: str, start: str, turns: str) -> None:
    segment_files.MOST = 4  # packs, so that there are many segments
    draw, place = random.Random(int(seed)), Path(folder)
    noted = os.open(place / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def acknowledge(**what: object) -> None:
        os.write(noted, json.dumps(what).encode() + b"\n")

    log, versions = Log.create(place / "log", SCHEMA), Versions(place / "index")

    def append() -> None:
        got = log.append(events=some_events(draw), changes=some_changes(draw))
        acknowledge(end=got.changes.stop)

    for _ in range(3):
        append()
    stream = restarted(place, start)
    stream.run(0)
    acknowledge(begun=log.end if start == "latest" else 0)
    for turn in range(int(turns)):
        chance = draw.random()
        if chance < 0.35:
            append()
        elif chance < 0.7:
            stream.run(draw.randint(1, 3))
        elif chance < 0.77:
            acknowledge(version=compile_version(log, versions))
        elif chance < 0.8 and versions.latest() is not None:
            acknowledge(batch=turn, pinned=versions.pin("frames", turn, keep=100).sequence)
        elif chance < 0.85:
            versions.sweep(draw.randrange(log.end + 1))
        elif chance < 0.9:
            compact(out_of(place), keep=2, many=2, whole=100, older=0.0)
        elif chance < 0.95:
            log.compact(log.end)
        else:
            stream = restarted(place, start)


if __name__ == "__main__":
    main(*sys.argv[1:])
