"""Real operators on pictures and positions: what each scheduler has them called for.

Subscribers ask what drones see where: 50 places, six detectors, of which three are OpenCV's own.
Each scheduler begins knowing nothing but the cost that an operator states, and learns as it goes.
All must give the same answers. Naive depends on what subscribers write first, so it runs twice:
with the place first, which is cheap and rules most of them out, and with the place last.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from time import perf_counter

import pyarrow as pa

from tamis.engine import Engine
from tamis.lab.agreement import differences
from tamis.lab.progress import Step
from tamis.lab.records import OperatorRun
from tamis.lab.scheduling import SCHEDULERS
from tamis.lab.setting import Setting
from tamis.match.base import Matches
from tamis.model.schema import Schema
from tamis.workload import Workload, drones

OPERATORS = "operators"
REFERENCE = "naive"
_SUBSCRIPTIONS = 10_000
_EVENTS = 1_000
_FEW = 20  # subscriptions and events, unmeasured: to compile, to read models
_OTHERS = 1  # seed of those events


def runs(setting: Setting) -> Iterator[OperatorRun | Step]:
    """Each scheduler on the same subscriptions and events, the reference first."""
    size = min(_SUBSCRIPTIONS, setting.most_subscriptions)
    yield Step(OPERATORS, "pictures")
    both = {place: drones.make(size, seed=setting.seed, place=place) for place in ("first", "last")}
    made = both["first"]
    events = made.events(min(_EVENTS, setting.batch))
    others = made.events(_FEW, seed=_OTHERS)
    trusted: Matches | None = None
    for scheduler, place in _order():
        yield Step(OPERATORS, f"{scheduler}, the place {place}")
        made = both[place]
        _engine(made, made.subscriptions.slice(0, _FEW), scheduler).match_batch(others)
        engine = _engine(made, made.subscriptions, scheduler)
        batch = engine.encode(events)
        begun = perf_counter()
        answer = engine.match_batch(batch)
        ids = answer.subscriptions  # read, as a user would
        seconds = perf_counter() - begun
        trusted = answer if trusted is None else trusted
        report = engine.report()
        yield OperatorRun(
            OPERATORS,
            "drones over New York",
            scheduler,
            len(engine),
            engine.calls.predicates,
            events.num_rows,
            len(ids),
            seconds,
            {each.operator: each.events for each in report},
            {each.operator: each.calls for each in report},
            {each.operator: each.seconds for each in report},
            report.faults,
            sum(differences(answer, trusted)),
            REFERENCE,
            place,
            made.parameters,
        )
        del engine
        gc.collect()


def steps(setting: Setting) -> int:
    """How many results and steps there will be."""
    return 1 + 2 * len(_order())


def _order() -> tuple[tuple[str, str], ...]:
    others = ((name, "first") for name in SCHEDULERS if name != REFERENCE)
    return ((REFERENCE, "first"), (REFERENCE, "last"), *others)


def _engine(made: Workload, subscriptions: pa.Table, scheduler: str) -> Engine:
    engine = Engine(
        Schema.from_dict(made.schema), operators=drones.operators(), scheduler=scheduler
    )
    engine.subscribe_table(subscriptions)
    return engine
