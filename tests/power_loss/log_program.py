"""Uses a log in every way, and says what was acknowledged. Run as: log_program.py FOLDER SEED TURNS

Each acknowledgement is a line in FOLDER/acknowledged. The record of operations thus says what had
been acknowledged at each moment.
"""

from __future__ import annotations

import json
import os
import random
import sys

import pyarrow as pa

from tamis.store import Log, cancel, segment_files, subscribe

SCHEMA = {
    "attributes": {"name": "text"},
    "event_types": {"offer": {"name": "optional"}},
}


def main(folder: str, seed: str, turns: str) -> None:
    segment_files.MOST = 4  # packs, so that there are many segments
    draw = random.Random(int(seed))
    noted = os.open(f"{folder}/acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def acknowledge(**what: object) -> None:
        os.write(noted, json.dumps(what).encode() + b"\n")

    log = Log.create(f"{folder}/log", SCHEMA)
    acknowledge(created=True)
    for turn in range(int(turns)):
        name, rows = f"{seed}.{turn}", draw.choice((1, 2, 40))
        events = pa.table({"name": [name] * rows})
        chance = draw.random()
        if chance < 0.5:
            got = log.publish(events)
            acknowledge(first=got.start, end=got.stop, name=name)
        elif chance < 0.7:
            got = log.change(subscribe([name] * rows, ["name = a"] * rows))
            acknowledge(first=got.start, end=got.stop, name=name)
        elif chance < 0.85:
            both = log.append(events=events, changes=cancel([name]))
            acknowledge(first=both.events.start, end=both.changes.stop, name=name)
        elif chance < 0.93:
            log.compact(log.end)
        elif chance < 0.96:
            acknowledge(begin=log.trim(draw.randrange(log.end + 1)))
        else:
            log = Log.open(log.folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
