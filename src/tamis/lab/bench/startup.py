"""The time of a new process up to its first match."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.timing import TimingSample
from tamis.lab.results.records import Figure, Goal

_GOAL = Goal(3.0, at_most=True)  # seconds
_CODE = """\
import sys, time
begun = time.perf_counter()
from tamis import Engine, Schema
attributes = {"title": "text", "price": "decimal", "tags": "text"}
engine = Engine(Schema.from_dict({"attributes": attributes}), matcher=sys.argv[1])
engine.subscribe('price < 5 and title starts with "old"', id="bargains")
engine.subscribe("tags = oak or price between 10 and 20", id="ann")
engine.subscribe("tags = elm and price > 100", id="ben")
engine.subscribe("price missing", id="cleo")
engine.subscribe("price >= 3", id="dora")
found = engine.match({"title": "old chair", "price": 3})
print(time.perf_counter() - begun, *sorted(found))
"""
_ANSWER = ["bargains", "dora"]


def measure(setting: BenchSetting) -> Iterator[Figure]:
    """Five subscriptions and one event in new processes. Each reports its own time.

    First with a cache of compiled kernels, then without.
    """
    for matcher in setting.fastest:
        start(matcher)  # fills the cache of kernels
        taken = [start(matcher) for _ in range(setting.imports)]
        what = f"import to first match, a small engine with {matcher}"
        yield Figure.seconds("start", what, TimingSample.of(taken), _GOAL, matcher=matcher)
        if setting.first_starts:
            taken = []
            for _ in range(setting.first_starts):
                with TemporaryDirectory() as folder:
                    taken.append(start(matcher, folder))
            what = "  and with all kernels compiled, as on first use"
            yield Figure.seconds("start", what, TimingSample.of(taken), matcher=matcher)


def steps(setting: BenchSetting) -> int:
    """The number of figures."""
    return len(setting.fastest) * (2 if setting.first_starts else 1)


def start(matcher: str, folder: str | None = None) -> float:
    """Seconds of one process, with its kernels cached in `folder`, or in the usual place."""
    seconds, *found = new_process(_CODE, matcher, folder=folder).split()
    if found != _ANSWER:
        raise TamisError(f"a new process with {matcher} gave a wrong answer: {found}")
    return float(seconds)


def new_process(code: str, *arguments: str, folder: str | None = None) -> str:
    """What a new process prints that runs some code, with its kernels cached in `folder`."""
    environment = os.environ | ({} if folder is None else {"NUMBA_CACHE_DIR": folder})
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise TamisError(f"a new process failed: {ran.stderr}")
    return ran.stdout
