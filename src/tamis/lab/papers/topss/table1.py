"""TO-T1: the time to match one event, with a database beside the special matchers.

The time of a database includes generating the statement, as in the paper. Curves that take over
10 ms an event are measured on fewer events: as many as fit into the seconds of the step.
`counting-list-linear` has its predicates in lists instead of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.checks import (
    curves,
    figure,
    figures,
    judge,
    last_shared,
    ordered,
    place,
    shared_steps,
)
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, as_published, small_and_paper
from tamis.lab.papers.topss.databases import matcher_of, observe_connected
from tamis.lab.papers.topss.setting import (
    BIT,
    BYTE,
    DUCKDB,
    GROUPING,
    LINEAR_LIST,
    LIST,
    STAND_INS,
    TopssExperiment,
    database_curves,
    stand_in,
)

TIME = "match_ms"
LINEAR = "counting-list-linear"
_FAR = 10  # times: what the sign ≫ means here
_MILLIONS = 1_000_000
_ALIKE = 1.5  # times: two runs over the memory of a million differ as much
_DATABASE_LIMIT = 100_000  # subscriptions, at the small scale: a statement must not take seconds


def databases_are_far_slower(seen: Observations) -> Judgement:
    """Whether each database takes far longer than the bit matrix at every size."""
    databases = _present(seen)
    times = curves(seen, (BIT, *databases), TIME)
    ratios = [times[name][x] / times[BIT][x] for name in databases for x in shared_steps(times)]
    return judge(
        min(ratios) >= _FAR,
        f"{figures(times, 'ms')}: at least {figure(min(ratios))} times at every size",
        "The fixed cost of a statement makes a database slow for few subscriptions. For many, a "
        "database of today counts columns nearly as fast as memory delivers them.",
        opposite=max(ratios) < 1,
    )


def lists_beat_bits(seen: Observations) -> Judgement:
    """Whether lists are faster than the bit matrix at every size."""
    return ordered(
        curves(seen, (LIST, BIT), TIME),
        "ms",
        "Both raise the same counters one by one. Lists jump through memory, a bit matrix reads on "
        "through its rows, and every eighth subscription has a bit in them.",
    )


def bits_cost_some_times_lists(seen: Observations) -> Judgement:
    """Whether the ratio of bit matrix to lists is as stated."""
    both = curves(seen, (LIST, BIT), TIME)
    ratios = {x: both[BIT][x] / both[LIST][x] for x in shared_steps(both)}
    listed = ", ".join(f"{place(x)}: {figure(ratio)}" for x, ratio in ratios.items())
    return judge(
        min(ratios.values()) >= 1.4 and max(ratios.values()) <= 7.5,
        f"bit matrix over lists by subscriptions: {listed}",
        "The ratio depends on how many words of a row are zero and on the cache. With 400 "
        "predicates and three of them in a subscription, nearly every second word has a bit.",
        opposite=max(ratios.values()) < 1,
    )


def table_and_list_are_best(seen: Observations) -> Judgement:
    """Whether tables with lists are the fastest as published, at the largest size.

    Lists of predicates with lists of subscriptions may be as fast: they differ by microseconds.
    """
    times = curves(seen, (LIST, LINEAR, BIT, BYTE), TIME)
    x = last_shared(times)
    matrices = min(times[name][x] for name in (BIT, BYTE))
    ours = times[LIST][x]
    return judge(
        float(x) >= _MILLIONS and ours < matrices and ours < times[LINEAR][x] * _ALIKE,
        figures(times, "ms"),
        "The first stage has 400 predicates on W4, so tables or lists of predicates differ by "
        "microseconds, and the second stage decides. The claim is about millions, so a smaller "
        "step cannot confirm it.",
        opposite=ours > _ALIKE * matrices,
    )


def kdb_takes_as_long(seen: Observations) -> Judgement:
    """Kdb's times, which cannot be measured here."""
    times = curves(seen, (LIST, *_present(seen)), TIME)
    x = last_shared(times)
    ratios = ", ".join(
        f"{name} {figure(each[x] / times[LIST][x])}" for name, each in times.items() if name != LIST
    )
    return Judgement(
        Standing.UNTESTABLE,
        f"at {place(x)}, times as long as lists: {ratios}",
        "Kdb is not free software and is not here. DuckDB and PostgreSQL stand in for it.",
    )


def _present(seen: Observations) -> list[str]:
    """The databases that were measured; DuckDB always should be."""
    found = [name for name in STAND_INS if seen.curve(name, TIME)]
    if stand_in(GROUPING, DUCKDB) not in found:
        raise KeyError(stand_in(GROUPING, DUCKDB))
    return found


class TopssTable1(TopssExperiment):
    """Table 1."""

    id = "TO-T1"
    title = "Time to match one event on W4"
    source = "table 1"
    matchers = (BIT, LIST, BYTE)
    plots = (
        Axes("subscriptions", "time of an event (ms)", TIME, True, True),
        Axes("subscriptions", "subscriptions touched an event", "subscriptions", True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((1_000, 10_000, 100_000, 1_000_000), 20, 0.4),
        ExperimentSize(
            (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000), 20, 5.0
        ),
    )
    claims = (
        Claim(
            "TO-T1.database",
            "The database requires far more time than the bit matrix, for any number.",
            databases_are_far_slower,
            stated="33,473 ms against 562 ms at 1 million",
        ),
        Claim(
            "TO-T1.order",
            "Lists are faster than the bit matrix, for any number of subscriptions.",
            lists_beat_bits,
            stated="190.7 ms against 562.4 ms at 1 million",
        ),
        Claim(
            "TO-T1.ratio",
            "The bit matrix takes some times as long as lists.",
            bits_cost_some_times_lists,
            stated="3.0 at 1,000, 7.0 at 5,000, 2.95 at 1 million, 1.47 at 5 million",
        ),
        Claim(
            "TO-T1.best",
            "For millions of subscriptions, tables of predicates with lists perform best.",
            table_and_list_are_best,
        ),
        Claim(
            "TO-T1.kdb",
            "Kdb takes 175 times as long as lists at 1 million subscriptions.",
            kdb_takes_as_long,
            stated="89.3 ms at 1,000, 33,473 ms at 1 million, 338,166 ms at 5 million",
        ),
    )

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        found = super().steps(scale)
        return [_without_databases(step) for step in found] if scale is LabScale.SMALL else found

    def curves(self) -> tuple[Curve, ...]:
        linear = Curve(LINEAR, Mode.PAPER, {**LINEAR_LIST, "grow": "constant"})
        tuned_databases = tuple(
            Curve(each.name, Mode.TUNED, {**each.options, "statement": "join"})
            for each in database_curves(GROUPING)
        )
        return (
            *as_published(self.matchers, self.published),
            linear,
            *database_curves(GROUPING),
            *(Curve(name, Mode.TUNED) for name in (BIT, LIST)),
            *tuned_databases,
            OURS,
        )

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), batches=0, counted=10, compared=3)

    def settled(self, runs: MatcherRuns, curve: Curve) -> Curve:
        return curve if curve.options else super().settled(runs, curve)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        matcher = LIST if curve.name == LINEAR else matcher_of(curve)
        return observe_connected(runs, step, curve, matcher)


def _without_databases(step: LabStep) -> LabStep:
    """The step; if it is large, without the curves of databases."""
    if step.parameters["n"] <= _DATABASE_LIMIT:
        return step
    return replace(
        step, curves=tuple(each for each in step.curves if matcher_of(each) == each.name)
    )
