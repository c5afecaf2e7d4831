"""TO-4: memory of the matchers on W4.

The paper measures resident memory; we add up the arrays of each part. `counting-list-deletion` is
the list with the table that says which predicates a subscription has, which a deletion needs. Kdb's
memory is that of DuckDB's and PostgreSQL's tables and indexes here.
"""

from __future__ import annotations

from dataclasses import replace

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
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.checks import curves, figure, figures, judge, last_shared, place, points
from tamis.lab.papers.matcher_experiment import OURS, ExperimentSize, as_published, small_and_paper
from tamis.lab.papers.topss.databases import connected, matcher_of
from tamis.lab.papers.topss.setting import (
    BIT,
    BYTE,
    GROUPING,
    LIST,
    PUBLISHED,
    STAND_INS,
    TopssExperiment,
    database_curves,
)
from tamis.match.base import Matcher
from tamis.match.topss.counting import CountingMatcher

MEMORY = "structure_mb"
DELETION = "counting-list-deletion"
_STATED_BYTES = 248e6 / 5e6  # a subscription, of the bit matrix at 5 million


def lists_are_smallest(seen: Observations) -> Judgement:
    """Whether lists without the deletion structure take less than both matrices.

    What the databases here take is shown, but says nothing about Kdb.
    """
    names = [LIST, BIT, BYTE, *(name for name in STAND_INS if seen.curve(name, MEMORY))]
    memory = curves(seen, names, MEMORY)
    x = last_shared(memory)
    matrices = [memory[name][x] for name in (BIT, BYTE)]
    return judge(
        memory[LIST][x] < min(matrices),
        figures(memory, "MB"),
        "A list takes four bytes for each of three predicates and spare room, a bit matrix fifty "
        "bytes for 400 predicates. With few subscriptions, the spare room of 400 lists decides.",
        opposite=memory[LIST][x] > max(matrices),
    )


def deletion_makes_them_larger(seen: Observations) -> Judgement:
    """Whether lists with the deletion structure take more than the bit matrix."""
    both = curves(seen, (BIT, DELETION), MEMORY)
    x = last_shared(both)
    return judge(
        both[DELETION][x] > both[BIT][x],
        figures(both, "MB"),
        "The paper's structure has an identifier for each association. Ours is the table of "
        "clauses, which also holds the bounds of every predicate, so it is larger, not smaller.",
        opposite=both[DELETION][x] < both[BIT][x],
    )


def bits_take_as_much(seen: Observations) -> Judgement:
    """Whether the bit matrix takes the bytes that the paper states."""
    memory = points(seen, BIT, MEMORY)
    x = list(memory)[-1]
    each = 1e6 * memory[x] / float(x)
    return judge(
        0.75 <= each / _STATED_BYTES <= 1.33,
        f"{figure(memory[x])} MB at {place(x)}: {figure(each)} bytes a subscription",
        "400 predicates take 50 bytes of bits a subscription. More is spare room of a growing "
        "matrix, or the part that does not grow with the subscriptions.",
    )


def database_takes_as_much(seen: Observations) -> Judgement:
    """Kdb's memory, which cannot be measured here."""
    found = {name: seen.curve(name, MEMORY) for name in STAND_INS}
    found = {name: each for name, each in found.items() if each}
    return Judgement(
        Standing.UNTESTABLE,
        figures(found, "MB") if found else "no database was measured",
        "Kdb is not free software and is not here. DuckDB and PostgreSQL stand in, and store the "
        "same three tables in their own ways.",
    )


class TopssFigure4(TopssExperiment):
    """Figure 4."""

    id = "TO-4"
    title = "Memory on W4"
    source = "figure 4"
    matchers = (BYTE, BIT, LIST)
    compared_by = "memory_mb"
    plots = (Axes("subscriptions", "memory (MB)", MEMORY, True, True),)
    sizes = small_and_paper(
        ExperimentSize((1_000, 10_000, 100_000), 20, 0.2),
        ExperimentSize(
            (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000), 20, 1.0
        ),
    )
    claims = (
        Claim(
            "TO-4.list",
            "Lists alone take less memory than all other schemes.",
            lists_are_smallest,
        ),
        Claim(
            "TO-4.deletion",
            "With the structure that deletions need, lists take more than the bit matrix.",
            deletion_makes_them_larger,
        ),
        Claim(
            "TO-4.bits",
            "The bit matrix takes about 50 bytes a subscription.",
            bits_take_as_much,
            stated="122 KB at 1,000 and 248 MB at 5 million subscriptions",
        ),
        Claim(
            "TO-4.kdb",
            "The database takes about four times as much as the bit matrix.",
            database_takes_as_much,
            stated="4,400 KB at 1,000 and about 1 GB at 5 million subscriptions",
        ),
    )

    def curves(self) -> tuple[Curve, ...]:
        deletion = Curve(DELETION, Mode.PAPER, dict(PUBLISHED[LIST]))
        return (
            *as_published(self.matchers, self.published),
            deletion,
            *database_curves(GROUPING),
            *(Curve(name, Mode.TUNED) for name in (BIT, LIST)),
            OURS,
        )

    def effort(self, step: LabStep) -> RunEffort:
        return replace(super().effort(step), batches=0, counted=5, compared=5)

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        blank = step.observation(curve)
        name = LIST if curve.name == DELETION else matcher_of(curve)
        try:
            with connected(curve):
                matcher = runs.build(name, curve.options).matcher
            runs.check(matcher, name)
        except MatcherError as why:
            return replace(blank, refusal=str(why))
        return replace(blank, measured={MEMORY: [_bytes(matcher, curve.name == DELETION) / 1e6]})


def _bytes(matcher: Matcher, deletion: bool) -> int:
    if isinstance(matcher, CountingMatcher):
        sizes = matcher.part_sizes
        return sizes.predicates + sizes.counting + (sizes.deletion if deletion else 0)
    return matcher.nbytes - matcher.clauses.nbytes
