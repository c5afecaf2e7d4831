"""Runs of matchers for experiments: checked, then measured, and returned as observations.

    runs = MatcherRuns.of(workload.make("dexin", 100_000, seed=seed), RunEffort(events=500))
    for curve in step.curves:
        yield runs.observe(step, curve)

A workload is encoded once for all curves of a step. `observe` builds the matcher of a curve,
compares its answers with those of another matcher, and measures:

| quantity | holds |
| --- | --- |
| `match_ms` | one number an event, matched alone: the median of some passes |
| `batch_ms` | one number a batch: its time divided by its events |
| `build_s` | one number: all clauses in one `add`, and the first match |
| `memory_mb` | one number: all arrays of the matcher, with its table of clauses |
| `add_us`, `remove_us` | one number a clause, added or removed alone |
| counts | an event: `matches`, and the operations in the tally of the matcher, such as `nodes` |

Events are encoded beforehand, so no time includes that. A matcher that refuses its options or the
workload, and one that runs out of memory, gives an observation with a refusal. A wrong answer
raises. `observe_best` tries a grid of options. The parts are there for experiments that measure
something else: `build`, `check`, `event_times`, `batch_times`, `count_work`, `change_times`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np

from tamis.encode.arrow import events_from_table
from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.encode.terms import Terms
from tamis.engine import Engine
from tamis.errors import MatcherError, TamisError
from tamis.lab.experiments.experiment import Curve, LabStep, Observation
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.timing import timed
from tamis.match import registry
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.capabilities import Plans, settle
from tamis.model.schema import Schema
from tamis.workload import Workload

_REFERENCE, _OTHER_REFERENCE = "scan", "naive"
_FEW = 300  # clauses of an unmeasured matcher, which compiles kernels, also those for many
_FIRST_CHANGES = 3  # not kept: they may compile


@dataclass(frozen=True)
class RunEffort:
    """How much is measured. `seconds` is the limit of each part; 0 changes or batches skip one."""

    events: int = 1_000  # drawn from the workload
    seconds: float = 1.0
    passes: int = 3  # over the events alone
    batches: int = 3
    changes: int = 200  # clauses removed and added again
    counted: int = 50  # events whose operations are counted; a fixed number, unlike those timed
    compared: int = 20  # events whose answers are compared


class BuiltMatcher(NamedTuple):
    """A matcher with all clauses, and the seconds to build it up to its first match."""

    matcher: Matcher
    seconds: float


class MatcherRuns:
    """Clauses and events for several matchers. Clause i has slot i."""

    def __init__(
        self, terms: Terms, events: EventBatch, effort: RunEffort | None = None, seed: int = 0
    ) -> None:
        """`seed` chooses the clauses that are removed and added again."""
        self.terms, self.events = terms, events
        self.effort = effort or RunEffort()
        self.seed = seed
        self.slots: Slots = np.arange(terms.clauses)
        self._answers: dict[str, Matches] = {}  # by reference, to the compared events

    @classmethod
    def of(cls, made: Workload, effort: RunEffort | None = None) -> Self:
        """The clauses of a workload, and as many of its events as the effort says."""
        effort = effort or RunEffort()
        schema = Schema.from_dict(made.schema)
        if "predicates" in made.subscriptions.column_names:
            encoder = Encoder(schema)
            terms, _ = clauses(encoder, made.subscriptions)
        else:
            engine = Engine(schema, _OTHER_REFERENCE)
            engine.subscribe_table(made.subscriptions)
            encoder = engine.encoder
            terms = engine.matcher.terms(engine.matcher.clauses.live_slots())
        events = events_from_table(encoder, made.events(effort.events))
        return cls(terms, events, effort, made.seed)

    def observe(
        self,
        step: LabStep,
        curve: Curve,
        matcher: str | None = None,
        inspect: Callable[[Matcher], Mapping[str, list[float]]] | None = None,
    ) -> Observation:
        """Measure a curve with the options of the curve. `matcher` is by default its name.

        `inspect` gives further quantities of the matcher, after all others are measured.
        """
        blank = step.observation(curve)
        name = matcher or curve.name
        try:
            built = self.build(name, curve.options)
            self.check(built.matcher, name)
            found = self._measured(blank, built, name)
            more = dict(inspect(built.matcher)) if inspect else {}
            return replace(found, measured={**found.measured, **more})
        except MatcherError as why:
            return replace(blank, refusal=str(why))
        except MemoryError:
            return replace(blank, refusal="there is not enough memory")

    def observe_best(
        self,
        step: LabStep,
        curve: Curve,
        grid: Iterable[Mapping[str, Any]],
        matcher: str | None = None,
        quantity: str = "match_ms",
    ) -> Observation:
        """The observation with the least `quantity` among the options of a grid.

        Each entry of the grid is added to the options of the curve. The observation has the best
        options. If all entries are refused, the first refusal is returned.
        """
        found = [
            self.observe(step, replace(curve, options={**curve.options, **options}), matcher)
            for options in grid
        ]
        fit = [each for each in found if not each.refusal]
        return min(fit, key=lambda each: each.value(quantity)) if fit else found[0]

    # -- parts -------------------------------------------------------------------------------------

    def build(self, name: str, options: Mapping[str, Any] | None = None) -> BuiltMatcher:
        """A matcher with all clauses. A small one is built before, which compiles the kernels."""
        few = self.slots[:_FEW]
        first = self.events[:1]
        small = registry.create(name, **(options or {}))
        small.add(few, self.terms.take(few))
        small.match(first)
        matcher = registry.create(name, **(options or {}))

        def fill() -> None:
            matcher.add(self.slots, self.terms)
            matcher.match(first)

        return BuiltMatcher(matcher, timed(fill))

    def check(self, matcher: Matcher, name: str) -> None:
        """Raise if a matcher and the reference disagree: a wrong answer must not be timed.

        A matcher that the registry calls inexact may find too much, unless its option says
        otherwise.
        """
        reference = _OTHER_REFERENCE if name == _REFERENCE else _REFERENCE
        some = self.events[: self.effort.compared]
        if reference not in self._answers:
            trusted = registry.create(reference)
            trusted.add(self.slots, self.terms)
            self._answers[reference] = trusted.match(some)
        missing, extra = differences(matcher.match(some), self._answers[reference])
        exact = registry.entry(name).exact or getattr(matcher, "exact", False)
        if missing or (extra and exact):
            raise TamisError(
                f"matcher {name!r} and {reference} disagree on {len(some)} events: "
                f"{missing} matches are missing, {extra} are wrong"
            )

    def _measured(self, blank: Observation, built: BuiltMatcher, name: str) -> Observation:
        matcher, effort = built.matcher, self.effort
        finish_plan(matcher, self.events)
        counts, counted = count_work(matcher, self.events[: effort.counted], effort.seconds)
        alone = event_times(matcher, self.events, effort.seconds, effort.passes)
        measured = {
            "match_ms": alone,
            "build_s": [built.seconds],
            "memory_mb": [matcher.nbytes / 1e6],
        }
        sizes = {"events": len(alone), "counted": counted}
        if effort.batches:
            fit = int(1e3 * effort.seconds / effort.batches / max(median(alone), 1e-6))
            some = self.events[: max(1, min(len(self.events), fit))]
            measured["batch_ms"] = batch_times(matcher, some, effort.seconds, effort.batches)
            sizes["batch"] = len(some)
        if effort.changes:
            measured["remove_us"], measured["add_us"] = change_times(
                matcher, effort.changes, effort.seconds, self.seed
            )
            self.check(matcher, name)  # clauses that were removed and added must match again
        return replace(
            blank, measured=measured, counts=counts, parameters={**blank.parameters, **sizes}
        )


def finish_plan(matcher: Matcher, batch: EventBatch) -> None:
    """Let an adaptive matcher finish its plan for these events, before it is timed."""
    if not isinstance(matcher, Plans):
        return
    for _ in range(3):
        matcher.match(batch)
        settle(matcher)


def count_work(
    matcher: Matcher, events: EventBatch, seconds: float
) -> tuple[dict[str, float], int]:
    """Operations and matches an event, and the events counted: all, if they take no longer."""
    matcher.tally.reset()
    matches, begun = 0, perf_counter()
    for single in singles(events):
        matches += matcher.match(single).total
        if perf_counter() - begun > seconds:
            break
    work = asdict(matcher.tally)
    number = work.pop("events")
    counts = {name: amount / number for name, amount in work.items()}
    return {**counts, "matches": matches / number}, number


def event_times(
    matcher: Matcher, events: EventBatch, seconds: float, passes: int = 3
) -> list[float]:
    """Milliseconds of each event, matched alone: the median of some passes over the events.

    So a single number is not the noise of the machine, and their deviation is that of the events.
    If the time does not suffice for all events and passes, there are fewer of both.
    """
    each = singles(events)
    matcher.match(each[0])
    rounds: list[list[float]] = [[]]
    begun = perf_counter()
    for single in each:
        rounds[0].append(timed(partial(matcher.match, single)))
        if perf_counter() - begun > seconds / passes:
            break
    spent = perf_counter() - begun
    while len(rounds) < passes and (len(rounds) + 1) * spent <= 1.5 * seconds:
        rounds.append([timed(partial(matcher.match, one)) for one in each[: len(rounds[0])]])
    return [1e3 * median(taken) for taken in zip(*rounds, strict=True)]


def batch_times(matcher: Matcher, batch: EventBatch, seconds: float, batches: int) -> list[float]:
    """Milliseconds an event in a batch, once for each repetition; the first is not kept."""
    taken = [timed(lambda: matcher.match(batch))]
    while len(taken) <= batches and (len(taken) == 1 or sum(taken) < seconds):
        taken.append(timed(lambda: matcher.match(batch)))
    return [1e3 * each / len(batch) for each in taken[1:]]


def change_times(
    matcher: Matcher, changes: int, seconds: float, seed: int = 0
) -> tuple[list[float], list[float]]:
    """Microseconds to remove, and to add again, single random clauses."""
    slots = np.random.default_rng(seed).permutation(matcher.clauses.live_slots())
    removed: list[float] = []
    added: list[float] = []
    for at in range(-_FIRST_CHANGES, min(changes, len(slots))):
        slot = slots[at : at + 1] if at >= 0 else slots[:1]
        terms = matcher.terms(slot)
        taken = timed(partial(matcher.remove, slot)), timed(partial(matcher.add, slot, terms))
        if at >= 0:
            removed.append(1e6 * taken[0])
            added.append(1e6 * taken[1])
        if sum(removed) + sum(added) > 1e6 * seconds:
            break
    return removed, added


def singles(events: EventBatch) -> list[EventBatch]:
    """The events, as batches of one."""
    return [events[row : row + 1] for row in range(len(events))]
