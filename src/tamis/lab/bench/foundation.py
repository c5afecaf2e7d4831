"""What parsing, loading, encoding and importing cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tamis import workload
from tamis.engine import Engine
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.startup import new_process
from tamis.lab.instruments.timing import TimingSample, repeated
from tamis.lab.results.records import Figure, Goal
from tamis.language import clauses, parse
from tamis.model.schema import Schema
from tamis.workload import as_dicts

_PARSE_GOAL = Goal(20_000.0, at_most=False)  # conditions a second
_LOAD_GOAL = Goal(30.0, at_most=True)  # seconds for a million subscriptions
_ARROW_GOAL = Goal(1e6, at_most=False)  # events a second
_IMPORT_GOAL = Goal(0.3, at_most=True)  # seconds


def parse_rate(setting: BenchSetting) -> Iterator[Figure]:
    """Parse, check and normalise conditions of four predicates."""
    rng = np.random.default_rng(setting.seed)
    numbers = rng.integers(1, 999, size=(setting.conditions, 4)).tolist()
    texts = [
        f'category <= toy and price < {a}.5 and quantity between 1 and {b} and title != "lot {c}"'
        for a, b, c, _ in numbers
    ]
    engine = Engine(Schema.from_dict(workload.make("auctions", 1).schema))

    def normal_form() -> None:
        for text in texts:
            clauses(parse(text, engine.schema))

    def intervals() -> None:
        for text in texts:
            engine.compile(text)

    goal = _PARSE_GOAL if len(texts) >= 5_000 else None
    what = "conditions of 4 predicates, text to normal form"
    yield Figure.rate("parse", what, setting.time(normal_form, 3), len(texts), goal)
    what = "  and folded to intervals"
    yield Figure.rate("parse", what, setting.time(intervals, 3), len(texts))


def load(setting: BenchSetting) -> Iterator[Figure]:
    """Load an Arrow table of predicates."""
    made = workload.make("dexin", setting.load_subscriptions, seed=setting.seed)
    schema = Schema.from_dict(made.schema)
    rows = made.subscriptions.num_rows
    # Kernels are compiled before the clock starts.
    Engine(schema).subscribe_table(made.subscriptions.slice(0, 10))
    sample = repeated(
        lambda: Engine(schema).subscribe_table(made.subscriptions),
        repeats=setting.load_repeats,
        budget=60.0,
    )
    goal = _LOAD_GOAL if rows == 1_000_000 else None
    what = f"{rows:,} DEXIN subscriptions of 10 attributes in one table"
    yield Figure.seconds("load", what, sample, goal, **made.parameters)


def load_text(setting: BenchSetting) -> Iterator[Figure]:
    """Load a table of conditions in text."""
    made = workload.make("auctions", setting.text_subscriptions, seed=setting.seed)
    schema = Schema.from_dict(made.schema)
    sample = setting.time(lambda: Engine(schema).subscribe_table(made.subscriptions), 3)
    rows = made.subscriptions.num_rows
    what = "auction conditions as text in one table"
    yield Figure.rate("load-text", what, sample, rows, **made.parameters)


def arrow(setting: BenchSetting) -> Iterator[Figure]:
    """Encode an Arrow table of ten numeric columns.

    Each repeat reads another table. Values of both signs have to be recoded, which is the usual
    case. Positive doubles are their own codes and are not even copied.
    """
    engine = Engine(Schema.from_dict(workload.make("dexin", 1).schema))
    rng = np.random.default_rng(setting.seed)
    rows = setting.arrow_events
    goal = _ARROW_GOAL if rows == 1_000_000 else None
    tables: list[pa.Table] = []

    def timed(what: str, encode: Callable[[pa.Table], object], low: float) -> Figure:
        def fresh() -> None:
            tables[:] = [pa.table({f"a{i}": rng.uniform(low, 1, rows) for i in range(1, 11)})]

        sample = setting.time(lambda: encode(tables[0]), 2, fresh)
        return Figure.rate("arrow", what, sample, rows, goal, rows=rows, low=low)

    yield timed("Arrow events of 10 decimals to an EventBatch", engine.encode, -1.0)
    yield timed("  and arranged event by event", lambda table: engine.encode(table).pairs, -1.0)
    yield timed("  all positive: Arrow's memory is shared", engine.encode, 0.0)
    engine = Engine()
    engine.subscribe_table(workload.make("dexin", 10, seed=setting.seed).subscriptions)
    dynamic = timed("  without a schema: dynamic attributes", engine.encode, -1.0)
    yield replace(dynamic, goal=None)


def dicts(setting: BenchSetting) -> Iterator[Figure]:
    """Encode a list of dicts."""
    made = workload.make("dexin", 10, seed=setting.seed)
    engine = Engine(Schema.from_dict(made.schema))
    events = as_dicts(made.events(setting.dict_events))
    sample = repeated(
        lambda: engine.encode(events), repeats=setting.repeats, budget=2 * setting.seconds
    )
    what = "events of 10 decimals as dicts to an EventBatch"
    yield Figure.rate("dicts", what, sample, len(events))
    without = Engine()
    without.subscribe_table(made.subscriptions)  # all ten attributes are mentioned
    sample = repeated(
        lambda: without.encode(events), repeats=setting.repeats, budget=2 * setting.seconds
    )
    yield Figure.rate("dicts", "  without a schema: dynamic attributes", sample, len(events))


def import_time(setting: BenchSetting) -> Iterator[Figure]:
    """Import tamis in new processes. Each reports its own time."""
    code = "import time; t = time.perf_counter(); import tamis; print(time.perf_counter() - t)"
    taken = [float(new_process(code)) for _ in range(setting.imports)]
    sample = TimingSample.of(taken)
    yield Figure.seconds("import", "import tamis in a new process", sample, _IMPORT_GOAL)


def subscribe(setting: BenchSetting) -> Iterator[Figure]:
    """Subscribe and unsubscribe one at a time on a loaded engine."""
    made = workload.make(
        "auctions", setting.text_subscriptions + setting.changes, seed=setting.seed
    )
    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions.slice(0, setting.text_subscriptions))
    rows = made.subscriptions.slice(setting.text_subscriptions).to_pylist()

    def come() -> None:
        for row in rows:
            engine.subscribe(row["condition"], id=row["id"])

    def go() -> None:
        for row in rows:
            if row["id"] in engine:
                engine.unsubscribe(row["id"])

    def fill() -> None:
        go()
        come()

    size = setting.text_subscriptions
    for what, run, prepare in (
        ("subscribe, one auction condition at a time", come, go),
        ("unsubscribe, one at a time", go, fill),
    ):
        sample = setting.time(run, prepare=prepare)
        yield Figure.rate("subscribe", what, sample, len(rows), subscriptions=size)
