"""Half of all subscriptions replaced one by one, while events are matched in between.

One leaves and another comes, again and again; every tenth time an event is matched, now and then a
batch. That shows what single changes cost at this size, whether a matcher puts work off until the
next match, and whether it wears out. It is done through the engine, with conditions in text, and
again with clauses in the matcher alone. Another matcher follows in bulk, by another door, and at
some moments both are asked the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.engine import Engine
from tamis.errors import MatcherError
from tamis.lab.agreement import differences
from tamis.lab.clauses import clauses
from tamis.lab.matching import affordable
from tamis.lab.progress import Step
from tamis.lab.records import Churn, Refusal
from tamis.lab.setting import Setting
from tamis.lab.timing import Spread, timed
from tamis.match import registry
from tamis.match.base import Matcher, Matches
from tamis.model.schema import Schema
from tamis.workload import Workload
from tamis.workload.tables import conditions

CHURN = "churn"
WORKLOAD = "dexin"
_REFERENCE = "scan"
_SUBSCRIPTIONS = 1_000_000
_MOMENTS = 10  # at which answers are compared; the end is one of them
_SINGLE = 10  # changes from one event to the next
_BATCHES = 500  # in all
_COMPARED = 100  # events, at each moment
_FEW = 100  # subscriptions, to compile what is compiled on first use


def churns(setting: Setting) -> Iterator[Churn | Refusal | Step]:
    """Each matcher through both doors."""
    size = min(_SUBSCRIPTIONS, setting.most_subscriptions)
    for matcher in setting.fastest:
        for door in (_EngineDoor, _MatcherDoor):
            yield Step(CHURN, f"{matcher}, through the {door.through}: load")
            try:
                for _ in _churn(setting, door(setting, matcher, *_workloads(setting, _FEW))):
                    pass  # unmeasured
                yield from _churn(setting, door(setting, matcher, *_workloads(setting, size)))
            except MatcherError as why:
                yield Refusal(CHURN, workload.variant(WORKLOAD).title, matcher, str(why))
            gc.collect()


def steps(setting: Setting) -> int:
    """How many results and steps there will be."""
    return 2 * len(setting.fastest) * (1 + _MOMENTS + 1)


def _workloads(setting: Setting, size: int) -> tuple[Workload, Workload]:
    """What is there at first, and what comes instead of half of it."""
    old = workload.make_variant(WORKLOAD, size, seed=setting.seed)
    return old, workload.make_variant(WORKLOAD, size // 2, seed=setting.seed + 1)


def reference(matcher: str) -> str:
    """What a matcher is compared with: never with itself."""
    return "naive" if matcher == _REFERENCE else _REFERENCE


class _Door(Protocol):
    """Where subscriptions come and go. Change i takes one out, and puts row i of the new ones in.

    What is not said to be measured may take its time.
    """

    through: str
    name: str
    matcher: Matcher
    old: Workload
    changes: int

    def encode(self, events: pa.Table) -> EventBatch: ...

    def prepare(self, first: int, last: int) -> None:
        """Make ready for some changes."""

    def remove(self, change: int) -> None:
        """Measured."""

    def add(self, change: int) -> None:
        """Measured."""

    def match(self, batch: EventBatch) -> object:
        """Measured."""

    def follow(self, first: int, last: int) -> None:
        """Let the reference make the same changes."""

    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        """Of the matcher, and of the reference."""


def _churn(setting: Setting, door: _Door) -> Iterator[Churn | Step]:
    matcher, title = door.matcher, workload.variant(WORKLOAD).title
    events = door.old.events(setting.batch)
    batch = door.encode(events)
    singles = [batch[at : at + 1] for at in range(len(batch))]
    some = affordable(setting, matcher, batch)
    before = matcher.nbytes / len(matcher)  # once it has matched: some make their index only then
    every = max(1, door.changes // _BATCHES)
    removed, added, alone, together = [], [], [], []
    compared = disagreements = 0
    for moment in range(_MOMENTS):
        yield Step(CHURN, f"{door.name}, through the {door.through}: {moment + 1} of {_MOMENTS}")
        first, last = (door.changes * at // _MOMENTS for at in (moment, moment + 1))
        door.prepare(first, last)
        for change in range(first, last):
            removed.append(timed(partial(door.remove, change)))
            added.append(timed(partial(door.add, change)))
            if change % _SINGLE == 0:
                event = singles[change // _SINGLE % len(singles)]
                alone.append(timed(partial(door.match, event)))
            if change % every == every - 1:
                together.append(timed(partial(door.match, some)))
        door.follow(first, last)
        asked = events.slice(moment * _COMPARED % len(events), _COMPARED)
        found = differences(*door.answers(asked))
        compared += len(asked)
        disagreements += found.missing
        if registry.entry(door.name).exact:
            disagreements += found.extra
    yield Churn(
        CHURN,
        title,
        door.name,
        door.through,
        len(matcher),
        door.changes,
        Spread.of(added),
        Spread.of(removed),
        Spread.of(alone),
        Spread.of(together),
        len(some),
        before,
        matcher.nbytes / len(matcher),
        compared,
        compared * len(matcher),
        disagreements,
        reference(door.name),
        door.old.parameters,
    )


class _EngineDoor:
    """Through the engine: ids go, conditions in text come under new ids."""

    through = "engine"

    def __init__(self, setting: Setting, matcher: str, old: Workload, new: Workload) -> None:
        schema = Schema.from_dict(old.schema)
        self._tried = Engine(schema, matcher, **setting.options)
        self._trusted = Engine(schema, reference(matcher))
        for engine in (self._tried, self._trusted):
            engine.subscribe_table(old.subscriptions)
        self.name, self.matcher, self.old = matcher, self._tried.matcher, old
        self.changes = new.subscriptions.num_rows
        self._ids = np.arange(self.changes) + len(self._tried)
        self._new = new.subscriptions.set_column(0, "id", pa.array(self._ids))
        self._leaving: list[int] = _leaving(old, self.changes).tolist()
        self._texts: dict[int, str] = {}

    def encode(self, events: pa.Table) -> EventBatch:
        return self._tried.encode(events)

    def prepare(self, first: int, last: int) -> None:
        texts = conditions(self._new.slice(first, last - first)).to_pylist()
        self._texts = dict(enumerate(texts, first))

    def remove(self, change: int) -> None:
        self._tried.unsubscribe(self._leaving[change])

    def add(self, change: int) -> None:
        self._tried.subscribe(self._texts[change], id=int(self._ids[change]))

    def match(self, batch: EventBatch) -> object:
        return self._tried.match_batch(batch).subscriptions

    def follow(self, first: int, last: int) -> None:
        for id in self._leaving[first:last]:
            self._trusted.unsubscribe(id)
        self._trusted.subscribe_table(self._new.slice(first, last - first))

    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        return self._tried.match_batch(events), self._trusted.match_batch(events)


class _MatcherDoor:
    """In the matcher alone: clauses go, and others come in their slots."""

    through = "matcher"

    def __init__(self, setting: Setting, matcher: str, old: Workload, new: Workload) -> None:
        self._engine = Engine(Schema.from_dict(old.schema), matcher, **setting.options)
        self._trusted = registry.create(reference(matcher))
        self.name, self.matcher, self.old = matcher, self._engine.matcher, old
        terms, _ = clauses(self._engine.encoder, old.subscriptions)
        for each in (self.matcher, self._trusted):
            each.add(np.arange(terms.clauses), terms)
        self._new, _ = clauses(self._engine.encoder, new.subscriptions)
        self.changes = self._new.clauses
        self._leaving = _leaving(old, self.changes)
        self._ones: dict[int, tuple[NDArray[np.int64], Terms]] = {}

    def encode(self, events: pa.Table) -> EventBatch:
        return self._engine.encode(events)

    def prepare(self, first: int, last: int) -> None:
        self._ones = {
            change: (self._leaving[change : change + 1], self._new.take(np.array([change])))
            for change in range(first, last)
        }

    def remove(self, change: int) -> None:
        self.matcher.remove(self._ones[change][0])

    def add(self, change: int) -> None:
        self.matcher.add(*self._ones[change])

    def match(self, batch: EventBatch) -> object:
        return self.matcher.match(batch)

    def follow(self, first: int, last: int) -> None:
        slots = self._leaving[first:last]
        self._trusted.remove(slots)
        self._trusted.add(slots, self._new.take(np.arange(first, last)))

    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        batch = self.encode(events)
        return self.matcher.match(batch), self._trusted.match(batch)


def _leaving(old: Workload, number: int) -> NDArray[np.int64]:
    """Which of the old subscriptions go, in the order in which they do."""
    return np.random.default_rng(old.seed).permutation(old.subscriptions.num_rows)[:number]
