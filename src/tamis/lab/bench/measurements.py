"""The table of measurements.

A new measurement is a function and a line in `MEASUREMENTS`. The function takes a `BenchSetting`,
yields its results as it has them and prints nothing. If results are minutes apart, it also yields
the name of each step, for progress bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tamis.errors import TamisError, suggestion
from tamis.lab.bench import churn, foundation, matchers, operators, peers, scale, startup
from tamis.lab.bench.doors import json_text, single, small, threads
from tamis.lab.bench.service import rows as service
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.spark import jobs
from tamis.lab.results.records import Result


@dataclass(frozen=True)
class Measurement:
    """A line of the table."""

    name: str
    what: str
    run: Callable[[BenchSetting], Iterator[Result | str]]
    steps: Callable[[BenchSetting], int] = lambda setting: 1  # number of results and steps
    on_request: bool = False  # it takes long or much memory, and runs only if it is named


MEASUREMENTS: dict[str, Measurement] = {
    each.name: each
    for each in (
        Measurement("parse", "conditions as text", foundation.parse_rate, lambda _: 2),
        Measurement("load", "a table of predicates", foundation.load),
        Measurement("load-text", "a table of conditions", foundation.load_text),
        Measurement("subscribe", "one subscription at a time", foundation.subscribe, lambda _: 2),
        Measurement("arrow", "events from Arrow", foundation.arrow, lambda _: 4),
        Measurement("dicts", "events from dicts", foundation.dicts, lambda _: 2),
        Measurement("import", "import tamis", foundation.import_time),
        Measurement("start", "import to first match", startup.measure, startup.steps),
        Measurement("match", "every matcher on three workloads", matchers.measure, matchers.steps),
        Measurement("peers", "the fastest at published sizes", peers.measure, peers.steps),
        Measurement("single", "one dict at a time", single.measure, single.steps),
        Measurement("json", "events in text", json_text.measure, json_text.steps),
        Measurement("small", "a thousand rules", small.measure, small.steps),
        Measurement("threads", "one engine in two threads", threads.measure, threads.steps),
        Measurement("scale", "up to ten million", scale.measure, scale.steps, True),
        Measurement("churn", "half of all replaced", churn.measure, churn.steps, True),
        Measurement(
            "operators", "real operators on pictures", operators.measure, operators.steps, True
        ),
        Measurement("spark", "jobs on Spark", jobs.measure, jobs.steps, True),
        Measurement("service", "a server under load", service.measure, service.steps, True),
    )
}


def chosen(names: Iterable[str]) -> Sequence[Measurement]:
    """The named measurements in the order of the table; without names, those not on request."""
    wanted = set(names)
    for name in wanted - MEASUREMENTS.keys():
        raise TamisError(f"unknown measurement {name!r}{suggestion(name, MEASUREMENTS)}")
    return [
        each
        for each in MEASUREMENTS.values()
        if (each.name in wanted if wanted else not each.on_request)
    ]
