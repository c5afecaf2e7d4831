"""Real operators on pictures and positions: how often each scheduler calls them.

Subscriptions are about what drones see where: 50 places and six detectors, three of them from
OpenCV. A scheduler starts with the declared costs of the operators, and learns. All schedulers must
give the same answers. The naive one depends on the order of predicates, so it runs twice: with the
place first, which is cheap and excludes most subscriptions, and with the place last.

Before that, the overhead of a call: the time of an event whose operator does nothing, less the time
of the same event without the operator.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from time import perf_counter

import pyarrow as pa

from tamis.engine import Engine
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.timing import TimingSample
from tamis.lab.results.records import SCHEDULERS, Figure, Goal, OperatorResult
from tamis.match.base import Matches
from tamis.model.operator import Signature
from tamis.model.schema import Schema
from tamis.operators.operator import Operator
from tamis.workload import Workload, drones

OPERATORS = "operators"
REFERENCE = "naive"
_SUBSCRIPTIONS = 10_000
_EVENTS = 1_000
_CALLS, _CONDITIONS = 10_000, 100  # of the overhead
_OVERHEAD = Goal(10.0, at_most=True)  # microseconds
_NUMBERS = Schema.from_dict({"attributes": {"n": "integer"}})
_FEW = 20  # subscriptions and events of an unmeasured run, which compiles and loads models
_OTHER_SEED = 1  # of those events
_ORDER = (
    (REFERENCE, "first"),
    (REFERENCE, "last"),
    *((name, "first") for name in SCHEDULERS if name != REFERENCE),
)


def measure(setting: BenchSetting) -> Iterator[OperatorResult | Figure | str]:
    """The overhead; each scheduler on the same subscriptions and events, after the reference."""
    yield "overhead"
    yield from _overheads(setting)
    size = min(_SUBSCRIPTIONS, setting.most_subscriptions)
    yield "pictures"
    both = {place: drones.make(size, seed=setting.seed, place=place) for place in ("first", "last")}
    made = both["first"]
    events = made.events(min(_EVENTS, setting.batch))
    others = made.events(_FEW, seed=_OTHER_SEED)
    trusted: Matches | None = None
    for scheduler, place in _ORDER:
        yield f"{scheduler}, the place {place}"
        made = both[place]
        _engine(made, made.subscriptions.slice(0, _FEW), scheduler).match_batch(others)
        engine = _engine(made, made.subscriptions, scheduler)
        batch = engine.encode(events)
        begun = perf_counter()
        answer = engine.match_batch(batch)
        ids = answer.subscriptions  # ids are resolved lazily: include that
        seconds = perf_counter() - begun
        trusted = answer if trusted is None else trusted
        report = engine.report()
        yield OperatorResult(
            OPERATORS,
            "drones over New York",
            scheduler,
            len(engine),
            len(engine.calls.predicates),
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


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 4 + 2 * len(_ORDER)


def _nothing(n: int) -> bool:
    return True


def _overheads(setting: BenchSetting) -> Iterator[Figure]:
    """What an operator that does nothing adds to an event, in microseconds."""
    signature = Signature("nothing", (), ("n",))
    pure, impure = (Operator(_nothing, signature, run="here", pure=each) for each in (True, False))
    rows = min(_CALLS, 10 * setting.batch)
    events = pa.table({"n": range(rows)})

    def times(made: Operator | None) -> TimingSample:
        engine = Engine(_NUMBERS, operators=() if made is None else made)
        call = "" if made is None else " and nothing()"
        for number in range(_CONDITIONS):
            engine.subscribe(f"n >= {number}{call}", id=number)
        batch = engine.encode(events)
        engine.match_batch(batch)  # compiles
        return setting.time(lambda: engine.match_batch(batch).subscriptions)

    without = times(None).seconds
    for made, results in ((pure, "remembered"), (impure, "not pure")):
        found = times(made)
        low, value, high = (
            1e6 * (each - without) / rows for each in (found.low, found.seconds, found.high)
        )
        goal = _OVERHEAD if rows == _CALLS else None
        yield Figure(
            OPERATORS,
            f"an operator that does nothing, {results}",
            value,
            "µs/event",
            low,
            high,
            found.repeats,
            goal,
        )


def _engine(made: Workload, subscriptions: pa.Table, scheduler: str) -> Engine:
    engine = Engine(
        Schema.from_dict(made.schema), operators=drones.operators(), scheduler=scheduler
    )
    engine.subscribe_table(subscriptions)
    return engine
