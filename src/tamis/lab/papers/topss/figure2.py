"""Figure 2 (1) to (6): time and memory of predicates in tables and in lists, by their number."""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import (
    Check,
    curves,
    figure,
    figures,
    judge,
    ordered,
    out_of_scale,
    place,
    shared_steps,
)
from tamis.lab.papers.topss.predicate_stage import (
    LISTS,
    MEMORY,
    SETTINGS,
    STAGE_1,
    TABLES,
    PredicateStageExperiment,
    curve_name,
)

_SAME = 1.5  # constants are read in nearly the same time; arrays grow in steps
_FAR = 3.0  # a ratio between workloads that is the opposite
_DISTINCT = 120 * 4 * 250  # attributes, comparators and values of W0
_STAGE_1_AXES = Axes(
    "distinct predicates", "time of the first stage (ms an event)", STAGE_1, True, True
)
_MEMORY_AXES = Axes("distinct predicates", "memory of the predicates (MB)", MEMORY, True, True)


def _tables_follow_the_domain(quantity: str, unit: str, why: str) -> Check:
    """Tables over larger domains take more, with as many predicates."""

    def check(seen: Observations) -> Judgement:
        names = [curve_name(TABLES, setting) for setting in ("W0", "W1", "W2")]
        return ordered(curves(seen, names, quantity), unit, why)

    return check


def _crosses_over(quantity: str, unit: str, why: str) -> Check:
    """On W3, the list is better at the first size and the table at the last."""

    def check(seen: Observations) -> Judgement:
        table_name, list_name = (curve_name(each, "W3") for each in (TABLES, LISTS))
        both = curves(seen, (list_name, table_name), quantity)
        sizes = shared_steps(both)
        better = [both[list_name][x] < both[table_name][x] for x in sizes]  # the list
        ends = ", ".join(
            f"{figure(both[list_name][x])} and {figure(both[table_name][x])} {unit} at {place(x)}"
            for x in (sizes[0], sizes[-1])
        )
        crossed = next((x for x, lists in zip(sizes, better, strict=True) if not lists), None)
        where = (
            "the list is better everywhere" if crossed is None else f"table from {place(crossed)}"
        )
        return judge(
            better[0] and not better[-1],
            f"list and table: {ends}; {where}",
            why,
            opposite=not better[0] and better[-1],
        )

    return check


def _time_does_not_follow_the_domain(seen: Observations) -> Judgement:
    """Lists take nearly the same time under all four workloads."""
    times = curves(seen, [curve_name(LISTS, setting) for setting in SETTINGS], STAGE_1)
    ratios = [
        max(each[x] for each in times.values()) / min(each[x] for each in times.values())
        for x in shared_steps(times)
    ]
    return judge(
        max(ratios) <= _SAME,
        f"{figures(times, 'ms')}; the slowest takes up to {figure(max(ratios))} times as long as "
        "the fastest",
        "The constants that an event examines depend on the number of predicates only, as the "
        "counts show. W3 differs: two thirds of its predicates crowd on the attributes with a "
        "large domain, once the small ones have no new values.",
        opposite=min(ratios) > _FAR,
    )


def _memory_follows_the_predicates(seen: Observations) -> Judgement:
    """Lists take the same memory under all workloads, and more with more predicates."""
    memory = curves(seen, [curve_name(LISTS, setting) for setting in SETTINGS], MEMORY)
    sizes = shared_steps(memory)
    ratios = [
        max(each[x] for each in memory.values()) / min(each[x] for each in memory.values())
        for x in sizes
    ]
    growth = min(each[sizes[-1]] / each[sizes[0]] for each in memory.values())
    return judge(
        max(ratios) <= _SAME and growth > 2,
        f"{figures(memory, 'MB')}; {figure(max(ratios))} times between workloads at most, "
        f"{figure(growth)} times between sizes",
        "A list stores its predicates and nothing else. What differs is the spare room of growing "
        "arrays, which depends on the order in which they grew.",
        opposite=min(ratios) > _FAR,
    )


def _small_domains_run_out(seen: Observations) -> Judgement:
    """W0 runs out of distinct predicates before the other workloads."""
    name = curve_name(LISTS, "W0")
    reached, refused = seen.curve(name, MEMORY), seen.refusals(name)
    if not reached:
        raise KeyError(name)
    most = max(float(x) for x in reached)
    if not refused and most < _DISTINCT:
        return out_of_scale(f"W0 has curves up to {figure(most)} predicates", most)
    ends = f"none at {figure(min(float(x) for x in refused))}" if refused else "no size refused"
    return judge(
        bool(refused),
        f"W0 has curves up to {figure(most)} predicates, {ends}",
        f"120 attributes, 4 comparators and 250 values make {_DISTINCT:,} predicates. The "
        "generator found as many as were wanted.",
    )


class TopssFigure21(PredicateStageExperiment):
    """Figure 2 (1)."""

    id = "TO-2.1"
    title = "Predicates in tables: time of the first stage"
    source = "figure 2 (1)"
    structures = (TABLES,)
    quantity = STAGE_1
    plots = (
        _STAGE_1_AXES,
        Axes("distinct predicates", "cells visited an event", "nodes", True, True),
    )
    claims = (
        Claim(
            "TO-2.1.domain",
            "With tables, the time increases with the size of the domain.",
            _tables_follow_the_domain(
                STAGE_1,
                "ms",
                "Every cell of a table is visited, so the cells an event follow from the domain "
                "alone, as the counts show. A time that does not follow them is dominated by "
                "setting the bits of satisfied predicates.",
            ),
        ),
    )


class TopssFigure22(PredicateStageExperiment):
    """Figure 2 (2)."""

    id = "TO-2.2"
    title = "Predicates in lists: time of the first stage"
    source = "figure 2 (2)"
    structures = (LISTS,)
    quantity = STAGE_1
    plots = (
        _STAGE_1_AXES,
        Axes("distinct predicates", "constants examined an event", "predicates", True, True),
    )
    claims = (
        Claim(
            "TO-2.2.domain",
            "With lists, the time is nearly independent of the size of the domain.",
            _time_does_not_follow_the_domain,
        ),
    )


class TopssFigure23(PredicateStageExperiment):
    """Figure 2 (3)."""

    id = "TO-2.3"
    title = "Tables against lists: time of the first stage on W3"
    source = "figure 2 (3)"
    structures = (TABLES, LISTS)
    settings = ("W3",)
    quantity = STAGE_1
    plots = (
        _STAGE_1_AXES,
        Axes("distinct predicates", "predicates found or examined", "predicates", True, True),
    )
    claims = (
        Claim(
            "TO-2.3.crossover",
            "Lists are faster for few predicates, tables for many.",
            _crosses_over(
                STAGE_1,
                "ms",
                "An event visits eight million cells of the tables under W3, however few "
                "predicates they hold, and three in four constants of the lists. By these counts "
                "lists stay ahead up to ten million predicates; the paper's linked lists, a miss "
                "of the cache for each predicate, lose far earlier than our arrays.",
            ),
        ),
    )


class TopssFigure24(PredicateStageExperiment):
    """Figure 2 (4)."""

    id = "TO-2.4"
    title = "Predicates in tables: memory"
    source = "figure 2 (4)"
    structures = (TABLES,)
    quantity = MEMORY
    plots = (_MEMORY_AXES,)
    claims = (
        Claim(
            "TO-2.4.domain",
            "The memory of tables depends on their number and on the size of the domain.",
            _tables_follow_the_domain(
                MEMORY,
                "MB",
                "A table has a cell for each value between the lowest and the highest constant. "
                "With so few predicates that most of the memory is theirs, the domain does not "
                "show.",
            ),
        ),
    )


class TopssFigure25(PredicateStageExperiment):
    """Figure 2 (5)."""

    id = "TO-2.5"
    title = "Predicates in lists: memory"
    source = "figure 2 (5)"
    structures = (LISTS,)
    quantity = MEMORY
    plots = (_MEMORY_AXES,)
    claims = (
        Claim(
            "TO-2.5.predicates",
            "The memory of lists depends on the number of predicates only.",
            _memory_follows_the_predicates,
        ),
    )


class TopssFigure26(PredicateStageExperiment):
    """Figure 2 (6)."""

    id = "TO-2.6"
    title = "Tables against lists: memory on W3"
    source = "figure 2 (6)"
    structures = (TABLES, LISTS)
    settings = ("W0", "W3")
    quantity = MEMORY
    plots = (_MEMORY_AXES,)
    claims = (
        Claim(
            "TO-2.6.crossover",
            "Lists take less memory for few predicates, tables for many.",
            _crosses_over(
                MEMORY,
                "MB",
                "The tables of W3 take the same memory for any number of predicates, and a list "
                "takes about as much for each predicate as a few cells. Our lists have no "
                "pointers, so they stay smaller until nearly half of the cells are occupied.",
            ),
        ),
        Claim(
            "TO-2.6.w0",
            "Under W0 the number of distinct predicates is limited.",
            _small_domains_run_out,
            stated="data for the first few thousand predicates only",
        ),
    )
