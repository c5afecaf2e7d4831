"""DX-2 with more subscriptions than one process holds: shards on Spark.

A task generates the subscriptions of one shard, builds the matcher of each curve over them, and
matches the same events as all other tasks. Nothing but figures leaves a task. The time of an event
is the sum over its shards, the work that it is; `slowest_ms` is its slowest shard, which it waits
for if all shards run at once. Counts and memory are sums.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from tamis import workload
from tamis.encode.arrow import events_from_table
from tamis.encode.encoder import Encoder
from tamis.lab.experiments.experiment import LabStep, Observation
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.model.schema import Schema
from tamis.spark.runtime.job_runner import run_tasks
from tamis.spark.runtime.sessions import session

SHARD = 500_000  # subscriptions
_OBSERVED = pa.schema(
    [
        ("shard", pa.int32()),
        ("curve", pa.int32()),
        ("refusal", pa.string()),
        ("measured", pa.string()),  # JSON
        ("counts", pa.string()),  # JSON
    ]
)


class ShardTask(NamedTuple):
    """Measures the curves of a step in one shard."""

    step: LabStep
    seed: int

    def run(self, shard: int) -> Iterator[dict[str, Any]]:
        """A row of `_OBSERVED` for each curve."""
        runs = self._runs(shard)
        for number, curve in enumerate(self.step.curves):
            found = runs.observe(self.step, curve)
            yield {
                "shard": shard,
                "curve": number,
                "refusal": found.refusal,
                "measured": json.dumps(found.measured),
                "counts": json.dumps(found.counts),
            }

    def _runs(self, shard: int) -> MatcherRuns:
        parameters = dict(self.step.parameters)
        events, seconds = parameters.pop("events"), parameters.pop("seconds")
        n, shards = parameters.pop("n"), parameters.pop("shards")
        size = n * (shard + 1) // shards - n * shard // shards
        # All shards have the events of one seed, and subscriptions of their own.
        source = workload.make("dexin", 1, seed=self.seed, **parameters)
        made = workload.make("dexin", size, seed=self.seed + 1 + shard, **parameters)
        encoder = Encoder(Schema.from_dict(made.schema))
        terms, _ = clauses(encoder, made.subscriptions)
        batch = events_from_table(encoder, source.events(events))
        effort = RunEffort(events, seconds, passes=1, batches=0, changes=0)
        return MatcherRuns(terms, batch, effort, self.seed)


def observe_shards(step: LabStep, seed: int) -> Iterator[Observation]:
    """Measure a step on the active Spark session, or on a new one on this machine."""
    shards = step.parameters["shards"]
    task = ShardTask(step, seed)
    rows = run_tasks(session(app="tamis lab"), shards, task.run, _OBSERVED)
    for number, curve in enumerate(step.curves):
        parts = [
            step.observation(
                curve,
                json.loads(row["measured"]),
                json.loads(row["counts"]),
                refusal=row["refusal"],
            )
            for row in rows
            if row["curve"] == number
        ]
        yield joined_shards(parts)


def joined_shards(parts: Sequence[Observation]) -> Observation:
    """One observation of all shards; a refusal of one is a refusal of all."""
    for each in parts:
        if each.refusal:
            return replace(each, measured={}, counts={})
    events = min(len(each.measured["match_ms"]) for each in parts)
    by_event = list(zip(*(each.measured["match_ms"][:events] for each in parts), strict=True))
    measured: dict[str, list[float]] = {
        "match_ms": [sum(times) for times in by_event],
        "slowest_ms": [max(times) for times in by_event],
    }
    for quantity in ("build_s", "memory_mb"):
        measured[quantity] = [sum(each.measured[quantity][0] for each in parts)]
    counts = {name: sum(each.counts[name] for each in parts) for name in parts[0].counts}
    parameters = {**parts[0].parameters, "events": events}
    return replace(parts[0], measured=measured, counts=counts, parameters=parameters)
