"""Appenders that are killed at any moment. Run as: python crashing.py LOG ACKNOWLEDGED ROUNDS SEED

Each round, some processes append to one log, and one of them merges segments; after a few
milliseconds they are killed. What a call has returned is noted in a file first come, first served.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

from tamis.store import Log, cancel, segment_files


def _append(folder: str, acknowledged: Path, tag: int) -> None:
    noted = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    log, draw = Log.open(folder), random.Random(tag)
    for turn in range(1_000_000):
        rows = draw.choice((1, 3, 500))
        if draw.random() < 0.3:
            got = log.change(cancel([f"{tag}.{turn}"] * rows))
        else:
            got = log.publish(pa.table({"name": [f"{tag}.{turn}"] * rows}))
        note = {"first": got.start, "end": got.stop, "name": f"{tag}.{turn}"}
        os.write(noted, json.dumps(note).encode() + b"\n")


def _compact(folder: str) -> None:
    log = Log.open(folder)
    while True:
        log.compact(log.end, 2_000)


segment_files.MOST = 8  # packs: so that there are segments to merge


def main(folder: str, acknowledged: str, rounds: str, seed: str) -> None:
    draw = random.Random(int(seed))
    log = Log.open(folder)
    for _ in range(3):  # so that children find everything loaded
        log.publish(pa.table({"name": ["first"]}))
    log.compact(log.end)
    for tag in range(int(rounds)):
        children = []
        for child in range(4):
            pid = os.fork()
            if not pid:
                if child == 3:
                    _compact(folder)
                _append(folder, Path(acknowledged), 10 * tag + child)
            children.append(pid)
        time.sleep(draw.uniform(0.005, 0.08))
        draw.shuffle(children)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            time.sleep(draw.choice((0, 0.003)))
        for pid in children:
            _, status = os.waitpid(pid, 0)
            assert os.WTERMSIG(status) == signal.SIGKILL, f"a child ended by itself: {status}"


if __name__ == "__main__":
    main(*sys.argv[1:])
