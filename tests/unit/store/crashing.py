"""Processes that are killed at any moment. Run as: python crashing.py LOG NOTES KILLS SEED

Each round, three processes append to one log, one merges segments and one trims. After a few
milliseconds they are killed, and the log must be good. Appenders note what they begin and what a
call has returned, so that the notes say what the log must contain.
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

from tamis.store import Log, cancel, segment_files, subscribe
from tamis.store.verification import verify

PROCESSES = 5
_KEPT = 3_000  # rows that are not trimmed


def _append(folder: str, notes: Path, tag: int) -> None:
    noted = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(**what: object) -> None:
        os.write(noted, json.dumps(what).encode() + b"\n")

    log, draw = Log.open(folder), random.Random(tag)
    mine: list[str] = []  # subscriptions
    for turn in range(1_000_000):
        name, rows = f"{tag}.{turn}", draw.choice((1, 3, 500))
        ids = [f"{name}/{row}" for row in range(rows)]
        kind = draw.choices(("publish", "subscribe", "cancel"), (6, 3, 1 if mine else 0))[0]
        if kind == "cancel":
            ids = [mine.pop(draw.randrange(len(mine)))]
            note(begun=kind, ids=ids)
            got = log.change(cancel(ids))
        elif kind == "subscribe":
            got = log.change(subscribe(ids[:3], ["price < 5"] * len(ids[:3])))
            mine += ids[:3]
        else:
            got = log.publish(pa.table({"name": ids}))
        note(done=kind, ids=ids[: len(got)], first=got.start)


def _compact(folder: str) -> None:
    log = Log.open(folder)
    while True:
        log.compact(log.end, 2_000)


def _trim(folder: str) -> None:
    log = Log.open(folder)
    while True:
        log.trim(max(0, log.end - _KEPT))
        time.sleep(0.01)


segment_files.MOST = 8  # packs: so that there are segments to merge


def main(folder: str, notes: str, kills: str, seed: str) -> None:
    draw = random.Random(int(seed))
    log = Log.open(folder)
    for _ in range(3):  # so that children find everything loaded
        log.publish(pa.table({"name": ["first"]}))
    log.compact(log.end)
    log.trim(0)
    killed = 0
    while killed < int(kills):
        children = []
        for child in range(min(PROCESSES, int(kills) - killed)):
            pid = os.fork()
            if not pid:
                if child == 3:
                    _compact(folder)
                if child == 4:
                    _trim(folder)
                _append(folder, Path(notes), killed + child)
            children.append(pid)
        time.sleep(draw.uniform(0.005, 0.08))
        draw.shuffle(children)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            time.sleep(draw.choice((0, 0.003)))
        for pid in children:
            _, status = os.waitpid(pid, 0)
            assert os.WTERMSIG(status) == signal.SIGKILL, f"a child ended by itself: {status}"
        killed += len(children)
        report = verify(Log.open(folder))
        assert report.good, report.findings


if __name__ == "__main__":
    main(*sys.argv[1:])
