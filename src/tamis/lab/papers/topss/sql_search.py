"""TO-sql: sequential search and predicate grouping in a database.

Sections 4.1 and 4.2 compare the two in words. Both generate a statement for each event.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabStep,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.checks import curves, exponent, figure, figures, judge, last_shared, ratio
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, small_and_paper
from tamis.lab.papers.topss.databases import matcher_of, observe_connected
from tamis.lab.papers.topss.setting import (
    DUCKDB,
    GROUPING,
    SEQUENTIAL,
    TopssExperiment,
    database_curves,
    stand_in,
)

TIME, COMPARED = "match_ms", "predicates"
_SEQUENTIAL, _GROUPING = (stand_in(each, DUCKDB) for each in (SEQUENTIAL, GROUPING))


def sequential_does_not_scale(seen: Observations) -> Judgement:
    """Whether the comparisons of a sequential search grow like the subscriptions, and its time."""
    times, compared = (curves(seen, (_SEQUENTIAL,), each)[_SEQUENTIAL] for each in (TIME, COMPARED))
    by_time, by_count = exponent(times), exponent(compared)
    last_two = dict(list(times.items())[-2:])
    at_the_end = exponent(last_two)
    return judge(
        by_count > 0.9 and at_the_end > 0.6,
        f"comparisons grow as n^{by_count:.2f}, time as n^{by_time:.2f} and between the last sizes "
        f"as n^{at_the_end:.2f}; {figures({_SEQUENTIAL: times}, 'ms')}",
        "Every row is compared, so the comparisons are proportional to the subscriptions. A fixed "
        "cost of the statement hides it as long as the tables are small.",
        opposite=by_count < 0.1,
    )


def grouping_compares_less(seen: Observations) -> Judgement:
    """Whether grouping compares fewer predicates than sequential search."""
    compared = curves(seen, (_GROUPING, _SEQUENTIAL), COMPARED)
    times = curves(seen, (_GROUPING, _SEQUENTIAL), TIME)
    x = last_shared(compared)
    fewer = ratio(compared[_SEQUENTIAL][x], compared[_GROUPING][x])
    return judge(
        fewer > 2,
        f"{figures(compared, 'comparisons an event')}: {figure(fewer)} times fewer; "
        f"{figures(times, 'ms')}",
        "Grouping compares each distinct predicate once. It saves nothing where few subscriptions "
        "share a predicate.",
        opposite=fewer < 1,
    )


def associations_are_the_bottleneck(seen: Observations) -> Judgement:
    """Whether grouping still takes long with many subscriptions, although it compares little."""
    times, compared = (curves(seen, (_GROUPING,), each)[_GROUPING] for each in (TIME, COMPARED))
    growth = list(times.values())[-1] / next(iter(times.values()))
    comparisons = list(compared.values())[-1] / next(iter(compared.values()))
    return judge(
        growth > 2 * comparisons,
        f"{figure(growth)} times the time and {figure(comparisons)} times the comparisons at the "
        f"last size; {figures({_GROUPING: times}, 'ms')}",
        "The comparisons are those of 400 predicates at any size, and the associations grow with "
        "the subscriptions. Where the time does not grow, the fixed cost of a statement dominates.",
        opposite=growth < 1,
    )


class TopssSqlSearch(TopssExperiment):
    """Sections 4.1 and 4.2."""

    id = "TO-sql"
    title = "Sequential search and predicate grouping in a database"
    source = "sections 4.1 and 4.2"
    matchers = ()
    plots = (
        Axes("subscriptions", "time of an event (ms)", TIME, True, True),
        Axes("subscriptions", "predicates compared an event", COMPARED, True, True),
    )
    sizes = small_and_paper(
        ExperimentSize((1_000, 10_000, 50_000), 10, 0.3),
        ExperimentSize((1_000, 10_000, 100_000, 1_000_000), 20, 5.0),
    )
    claims = (
        Claim(
            "TO-sql.sequential",
            "Sequential search compares every predicate and does not scale.",
            sequential_does_not_scale,
        ),
        Claim(
            "TO-sql.grouping",
            "Grouping reduces the comparisons if subscriptions share predicates.",
            grouping_compares_less,
        ),
        Claim(
            "TO-sql.associations",
            "The table of associations remains the bottleneck of grouping.",
            associations_are_the_bottleneck,
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        return (*database_curves(SEQUENTIAL, GROUPING), OURS)

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), batches=0, counted=5, compared=3)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        return observe_connected(runs, step, curve, matcher_of(curve))
