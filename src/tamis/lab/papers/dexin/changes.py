"""Figures 13 and 14: the time to subscribe, and the memory, by the number of subscriptions.

One experiment for two figures: the index that was built is the one whose memory is shown. The paper
subscribes one by one. Here subscriptions come in batches of 100, so that the time is that of the
index and not that of a call from Python; `subscribe_s` is the total. For `tamis`, which places
subscriptions according to the events that it sees, it includes that planning. Then a tenth of all
subscriptions, at random, is unsubscribed and subscribed again, batch by batch: `unsubscribe_us` and
`subscribe_us` are microseconds a subscription, a number for each batch. Memory is that of all
arrays, with the clauses themselves, which all matchers keep.

"DEXIN, linked lists" has unsorted lists instead of sorted slots, as the paper proposes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tamis.errors import MatcherError
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
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, event_times, finish_plan
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.checks import (
    TIME,
    CurveReading,
    listed,
    lowest,
    mean_ratio,
    slightly_above,
)
from tamis.lab.papers.dexin.curves import ALGORITHMS, compared_curves, paper_curve
from tamis.lab.papers.dexin.scenario import DexinExperiment, matcher_of, tuned
from tamis.lab.papers.dexin.subscriptions import AXIS, SHARES
from tamis.match import registry
from tamis.match.base import Matcher, Slots

LINKED = "dexin, linked lists"
_SHARES = {**SHARES, LabScale.SMALL: (0.25, 0.5, 1.0)}
_BATCH = 100
_FEW = 1_000  # subscriptions of an unmeasured run
_CHANGED = 10  # one subscription in ten is removed and added again ...
_MOST_CHANGED = 5_000  # ... up to this many
_TOTAL = CurveReading("subscribe_s", unit="s")
_MEMORY = CurveReading("memory_mb", unit="MB")
_COUNTERS = ("tama", "h-tree", "be-tree", "opindex")
_SIMILAR = 2.0
_SLIGHT = 1.5
_WHY_TIME = (
    "Our slots are sorted arrays that are dealt again when the number of ends has doubled, not "
    "red-black trees, so an insertion moves part of a slot and costs no allocation. Bulk sorting "
    "and appending have other constants in arrays than nodes have in Java."
)
_WHY_MEMORY = (
    "All our indexes are flat arrays, so the overhead of nodes that sets them apart in Java is "
    "missing. DEXIN also keeps columns of bounds for its inclusive method, where the paper reads "
    "the subscriptions."
)


def _unsubscribing(seen: Observations) -> Judgement:
    ratios = {}
    for name in ALGORITHMS:
        removed = CurveReading("unsubscribe_us").values(seen, name)
        added = CurveReading("subscribe_us").values(seen, name)
        ratios[name] = sum(removed) / sum(added)
    similar = [1 / _SIMILAR <= each <= _SIMILAR for each in ratios.values()]
    said = "unsubscribing / subscribing: " + listed(
        {name: f"{each:.2f}" for name, each in ratios.items()}
    )
    why = (
        "An addition appends or inserts, but a removal has to find its entry first. In unsorted "
        "lists that is a search, and in trees a walk without the cost of cutting."
    )
    return judge(all(similar), said, why, opposite=not any(similar))


def _linked(reading: CurveReading, why: str, most: float) -> Any:
    """Linked lists are no worse than sorted slots, and at most a factor above REIN."""

    def check(seen: Observations) -> Judgement:
        own = mean_ratio(seen, LINKED, "dexin", reading)
        other = mean_ratio(seen, LINKED, "rein", reading)
        said = f"linked lists: {own:.2f} times sorted slots, {other:.2f} times rein"
        return judge(own <= 1 and other <= most, said, why, opposite=own > most)

    return check


def _linked_match(seen: Observations) -> Judgement:
    ratio = mean_ratio(seen, LINKED, "dexin", TIME)
    why = (
        "An excluded slot is read from end to end, and each step along a linked list is a random "
        "access, while our sorted slots are arrays side by side. In Java a red-black tree also "
        "follows pointers, so the paper sees little difference."
    )
    return judge(1 < ratio <= _SLIGHT, f"{ratio:.2f} times the time", why, opposite=ratio < 0.9)


class ChangesExperiment(DexinExperiment):
    """All six algorithms and DEXIN with linked lists, N from 0.25 to 1.75 million."""

    id = "DX-13"
    title = "Subscribing time and memory by number of subscriptions"
    source = "figures 13 and 14"
    varied = "n"
    values = _SHARES
    plots = (
        Axes(AXIS, "time to subscribe all (s)", "subscribe_s", log_y=True),
        Axes(AXIS, "time to unsubscribe one (µs)", "unsubscribe_us", log_y=True),
        Axes(AXIS, "memory (MB)", "memory_mb", log_y=True),
    )
    claims = (
        Claim(
            "DX-13.order",
            "DEXIN takes less time to subscribe than TAMA, H-Tree, BE-Tree and OpIndex.",
            lowest(_WHY_TIME, _TOTAL, others=_COUNTERS),
        ),
        Claim(
            "DX-13.rein",
            "DEXIN takes slightly more time to subscribe than REIN (at most half as much again).",
            slightly_above("rein", _SLIGHT, _WHY_TIME, _TOTAL),
            stated="slightly worse",
        ),
        Claim(
            "DX-13.linked",
            "With linked lists, DEXIN subscribes about as fast as REIN.",
            _linked(_TOTAL, _WHY_TIME, 1.1),
        ),
        Claim(
            "DX-13.linked-match",
            "Linked lists make matching slightly slower.",
            _linked_match,
            stated="a slight increase",
        ),
        Claim(
            "DX-13.unsubscribe",
            "Unsubscribing costs about as much as subscribing (within a factor of two).",
            _unsubscribing,
            stated="similar",
        ),
        Claim(
            "DX-14.low",
            "DEXIN takes less memory than TAMA, H-Tree, BE-Tree and OpIndex.",
            lowest(_WHY_MEMORY, _MEMORY, others=_COUNTERS),
        ),
        Claim(
            "DX-14.rein",
            "DEXIN takes slightly more memory than REIN (at most half as much again).",
            slightly_above("rein", _SLIGHT, _WHY_MEMORY, _MEMORY),
            stated="slightly worse",
        ),
        Claim(
            "DX-14.linked",
            "With linked lists, DEXIN takes about as much memory as REIN.",
            _linked(_MEMORY, _WHY_MEMORY, 1.1),
        ),
    )

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return (*compared_curves(), paper_curve("dexin", "linked lists", ends="linked"))

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        if curve.mode is Mode.TUNED:
            curve = tuned(runs, step, curve)
        blank = step.observation(curve)
        name = matcher_of(curve)
        try:
            few = MatcherRuns(runs.terms.take(runs.slots[:_FEW]), runs.events, runs.effort)
            _changes(few, registry.create(name, **curve.options))  # compiles the kernels
            matcher = registry.create(name, **curve.options)
            measured = _changes(runs, matcher)
            runs.check(matcher, name)
        except MatcherError as why:
            return replace(blank, refusal=str(why))
        except MemoryError:
            return replace(blank, refusal="there is not enough memory")
        times = event_times(matcher, runs.events, runs.effort.seconds)
        return replace(blank, measured={**measured, "match_ms": times})


def _changes(runs: MatcherRuns, matcher: Matcher) -> dict[str, list[float]]:
    """Subscribe all, then unsubscribe some and subscribe them again."""
    seconds = _subscribe(runs, matcher)
    memory = matcher.nbytes / 1e6
    removed, added = _change(runs, matcher)
    return {
        "subscribe_s": [seconds],
        "memory_mb": [memory],
        "unsubscribe_us": removed,
        "subscribe_us": added,
    }


def _subscribe(runs: MatcherRuns, matcher: Matcher) -> float:
    """Seconds to add all clauses, batch by batch, and to plan where they go, if a matcher does."""
    seconds = 0.0
    for start in range(0, len(runs.slots), _BATCH):
        slots = runs.slots[start : start + _BATCH]
        seconds += timed(partial(matcher.add, slots, runs.terms.take(slots)))
    return seconds + timed(partial(finish_plan, matcher, runs.events))


def _change(runs: MatcherRuns, matcher: Matcher) -> tuple[list[float], list[float]]:
    """Microseconds a clause to remove some clauses and to add them again, by batch."""
    number = min(len(runs.slots) // _CHANGED + 1, _MOST_CHANGED)
    chosen: Slots = np.random.default_rng(runs.seed).permutation(runs.slots)[:number]
    removed, added = [], []
    for start in range(0, number, _BATCH):
        slots = chosen[start : start + _BATCH]
        terms = runs.terms.take(slots)
        removed.append(1e6 * timed(partial(matcher.remove, slots)) / len(slots))
        added.append(1e6 * timed(partial(matcher.add, slots, terms)) / len(slots))
    return removed, added
