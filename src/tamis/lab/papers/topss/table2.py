"""TO-T2: the time to load subscriptions in bulk.

The special matchers get them in batches of ten, which W4 states, generated on the fly: neither
generating nor encoding them is timed. The lists grow by a constant, as published. A database reads
a flat file with a line for each predicate, as in the paper: reading and encoding it is timed.
Tuned, all subscriptions arrive in one batch, and the lists double.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tamis.encode.encoder import Encoder
from tamis.errors import MatcherError
from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Mode,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import (
    NOISE,
    curves,
    exponent,
    figure,
    figures,
    judge,
    out_of_scale,
    place,
    points,
    shared_steps,
)
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, as_published, small_and_paper
from tamis.lab.papers.topss.databases import connected, matcher_of
from tamis.lab.papers.topss.setting import (
    BIT,
    DUCKDB,
    GROUPING,
    LIST,
    STAND_INS,
    TopssExperiment,
    database_curves,
    stand_in,
)
from tamis.match import registry
from tamis.match.base import Matcher
from tamis.model.schema import Schema
from tamis.workload import Workload
from tamis.workload.tables import PREDICATE, SUBSCRIPTIONS_SCHEMA
from tamis.workload.topss import SETTINGS

LOAD = "load_ms"
_REPEATS = 3
_FEW = 1_000  # subscriptions of an unmeasured load


def bits_load_fastest(seen: Observations) -> Judgement:
    """Whether the bit matrix loads faster than lists and databases at every size."""
    databases = [name for name in STAND_INS if seen.curve(name, LOAD)]
    times = curves(seen, (BIT, LIST, *databases), LOAD)
    others = [name for name in times if name != BIT]
    ratios = [times[name][x] / times[BIT][x] for name in others for x in shared_steps(times)]
    return judge(
        min(ratios) > 1 - NOISE,
        f"{figures(times, 'ms')}; the best other takes {figure(min(ratios))} times as long or more",
        "Batches of ten cost a call each, which outweighs the work of both structures. A database "
        "gets all subscriptions in one statement.",
        opposite=max(ratios) < 1,
    )


def lists_fall_behind(seen: Observations) -> Judgement:
    """Whether a database overtakes the lists between 100,000 and 500,000 subscriptions."""
    both = curves(seen, (LIST, stand_in(GROUPING, DUCKDB)), LOAD)
    lists, database = both.values()
    sizes = shared_steps(both)
    overtaken = [float(x) for x in sizes if lists[x] > database[x]]
    where = f"from {place(min(overtaken))}" if overtaken else "at no size"
    if not overtaken and max(map(float, sizes)) <= 100_000:
        return out_of_scale(figures(both, "ms"), max(sizes, key=float))
    return judge(
        bool(overtaken) and 100_000 < min(overtaken) <= 500_000,
        f"{figures(both, 'ms')}; DuckDB is faster {where}",
        "The paper's lists fall behind because each re-allocation moves a whole list. Copies of "
        "today's memory are cheap, so batches of ten cost more than their moves; where DuckDB is "
        "faster, it is so because it loads all in one batch.",
        opposite=len(overtaken) == len(sizes),
    )


def lists_load_in_quadratic_time(seen: Observations) -> Judgement:
    """Whether loading lists that grow by a constant takes more than linear time."""
    times = points(seen, LIST, LOAD)
    power = exponent(times)
    return judge(
        power > 1.15,
        f"{place(list(times)[-1])} subscriptions in {figure(list(times.values())[-1])} ms, as "
        f"n^{power:.2f}",
        "Each of 400 lists moves once for every 64 subscriptions added to it, so the copies are "
        "quadratic, but they run at the speed of memory. Up to the measured size the calls cost "
        "more.",
        opposite=power < 1 - NOISE,
    )


def kdb_loads_as_fast(seen: Observations) -> Judgement:
    """Kdb's times, which cannot be measured here."""
    found = {name: each for name in STAND_INS if (each := seen.curve(name, LOAD))}
    return Judgement(
        Standing.UNTESTABLE,
        figures(found, "ms") if found else "no database was measured",
        "Kdb is not free software and is not here. DuckDB and PostgreSQL stand in for it.",
    )


class TopssTable2(TopssExperiment):
    """Table 2."""

    id = "TO-T2"
    title = "Time to load subscriptions in bulk on W4"
    source = "table 2"
    matchers = (BIT, LIST)
    plots = (Axes("subscriptions", "time to load all (ms)", LOAD, True, True),)
    sizes = small_and_paper(
        ExperimentSize((1_000, 10_000, 50_000), 10, 1.0),
        ExperimentSize(
            (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000), 10, 5.0
        ),
    )
    claims = (
        Claim(
            "TO-T2.bits",
            "Loading the bit matrix is fastest.",
            bits_load_fastest,
            stated="5,428 ms against 15,658 (Kdb) and 97,746 (lists) at 1 million",
        ),
        Claim(
            "TO-T2.overtaken",
            "The database overtakes the lists between 100,000 and 500,000 subscriptions.",
            lists_fall_behind,
            stated="1,699 against 862 ms at 100,000; 6,976 against 16,093 ms at 500,000",
        ),
        Claim(
            "TO-T2.quadratic",
            "Loading lists takes more than linear time, since they are re-allocated.",
            lists_load_in_quadratic_time,
            stated="862 ms at 100,000, 97,746 ms at 1 million",
        ),
        Claim(
            "TO-T2.kdb",
            "Kdb loads a million subscriptions in some seconds.",
            kdb_loads_as_fast,
            stated="52 ms at 1,000, 15,658 ms at 1 million",
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (
            *as_published(self.matchers, self.published),
            *database_curves(GROUPING),
            Curve(BIT, Mode.TUNED, {"counters": "planes"}),
            Curve(LIST, Mode.TUNED, {"grow": "double"}),
            OURS,
        )

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        made = self.workload(step, seed)
        runs = MatcherRuns.of(made, self.effort(step))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "subscriptions.csv"
            write_flat_file(made, file)
            for curve in step.curves:
                yield _observe(runs, made, file, step, curve)


def _observe(
    runs: MatcherRuns, made: Workload, file: Path, step: LabStep, curve: Curve
) -> Observation:
    blank = step.observation(curve)
    name = matcher_of(curve)
    few = MatcherRuns(runs.terms.take(runs.slots[:_FEW]), runs.events, runs.effort)
    taken: list[float] = []
    try:
        with connected(curve):
            few.build(name, curve.options)  # compiles the kernels
            while len(taken) < _REPEATS and sum(taken) <= step.parameters["seconds"]:
                matcher = registry.create(name, **curve.options)
                taken.append(timed(_loading(runs, made, file, curve, matcher)))
            runs.check(matcher, name)
    except MatcherError as why:
        return replace(blank, refusal=str(why))
    return replace(blank, measured={LOAD: [1e3 * each for each in taken]})


def _loading(
    runs: MatcherRuns, made: Workload, file: Path, curve: Curve, matcher: Matcher
) -> Callable[[], None]:
    """How a curve loads all subscriptions."""
    batch = SETTINGS["W4"].subscription_batch
    # Cut beforehand: the paper's batches arrive ready.
    parts = [
        (runs.slots[at : at + batch], runs.terms.take(runs.slots[at : at + batch]))
        for at in range(0, len(runs.slots), batch)
        if curve.mode is Mode.PAPER and "database" not in curve.options
    ]

    def load() -> None:
        if "database" in curve.options:
            encoder = Encoder(Schema.from_dict(made.schema))
            matcher.add(runs.slots, clauses(encoder, read_flat_file(file)).terms)
        elif parts:
            for slots, terms in parts:
                matcher.add(slots, terms)
        else:
            matcher.add(runs.slots, runs.terms)
        matcher.match(runs.events[:1])  # some build their index at the first match

    return load


def write_flat_file(made: Workload, file: Path) -> None:
    """Write a line for each predicate: id, attribute, comparator, value."""
    lists = made.subscriptions.column("predicates").combine_chunks()
    assert isinstance(lists, pa.ListArray)
    predicates = lists.flatten()
    assert isinstance(predicates, pa.StructArray)
    attribute, comparator, value, _ = predicates.flatten()
    id = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    columns = {"id": id, "attribute": attribute, "comparator": comparator, "value": value}
    csv.write_csv(pa.table(columns), file)


def read_flat_file(file: Path) -> pa.Table:
    """The table of subscriptions that a flat file describes."""
    flat = csv.read_csv(
        file,
        convert_options=csv.ConvertOptions(
            column_types={"value": pa.float64(), "attribute": pa.string()}
        ),
    )
    id = flat.column("id").to_numpy()
    starts = np.flatnonzero(np.diff(id, prepend=-1))
    texts = pa.nulls(flat.num_rows, pa.string())
    columns = [flat.column(name).combine_chunks() for name in flat.column_names[1:]]
    predicates = pa.StructArray.from_arrays([*columns, texts], fields=list(PREDICATE))
    offsets = pa.array(np.append(starts, flat.num_rows).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, predicates)
    return pa.Table.from_arrays([pa.array(id[starts]), lists], schema=SUBSCRIPTIONS_SCHEMA)
