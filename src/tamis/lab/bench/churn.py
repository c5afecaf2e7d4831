"""Replaces half of all subscriptions one by one, with matches in between.

Each change removes a subscription and adds another. An event is matched after every tenth change,
and a batch now and then. This shows the cost of single changes, whether a matcher defers work to
the next match, and whether it degrades. The changes go through the engine, with conditions in text,
and then through the matcher alone, with clauses. A reference matcher makes the same changes in
bulk, and the answers of both are compared at some checkpoints.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.engine import Engine
from tamis.errors import MatcherError
from tamis.lab.bench.matchers import affordable
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.timing import Spread, timed
from tamis.lab.results.records import ChurnResult, RefusedResult
from tamis.match import registry
from tamis.match.base import Matches
from tamis.model.schema import Schema
from tamis.workload import Workload
from tamis.workload.tables import conditions

CHURN = "churn"
WORKLOAD = "dexin"
_REFERENCE = "scan"
_SUBSCRIPTIONS = 1_000_000
_CHECKPOINTS = 10  # at which answers are compared; the last is the end
_SINGLE = 10  # changes between two single events
_BATCHES = 500  # in all
_COMPARED = 100  # events at each checkpoint
_FEW = 100  # subscriptions of an unmeasured run, which compiles kernels


def measure(setting: BenchSetting) -> Iterator[ChurnResult | RefusedResult | str]:
    """Each matcher, through the engine and alone."""
    size = min(_SUBSCRIPTIONS, setting.most_subscriptions)
    for matcher in setting.fastest:
        for target in (_EngineTarget, _MatcherTarget):
            yield f"{matcher}, through the {target.through}: load"
            try:
                for _ in _churn(setting, target(setting, matcher, *_workloads(setting, _FEW))):
                    pass  # unmeasured
                yield from _churn(setting, target(setting, matcher, *_workloads(setting, size)))
            except MatcherError as why:
                yield RefusedResult(CHURN, workload.variant(WORKLOAD).title, matcher, str(why))
            gc.collect()


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 2 * len(setting.fastest) * (1 + _CHECKPOINTS + 1)


def _workloads(setting: BenchSetting, size: int) -> tuple[Workload, Workload]:
    """The first subscriptions, and those that replace half of them."""
    old = workload.make_variant(WORKLOAD, size, seed=setting.seed)
    return old, workload.make_variant(WORKLOAD, size // 2, seed=setting.seed + 1)


def reference(matcher: str) -> str:
    """The matcher to compare with, which is another one."""
    return "naive" if matcher == _REFERENCE else _REFERENCE


class _ChurnTarget(ABC):
    """Takes the changes. Change i removes a subscription and adds row i of the new ones."""

    through: ClassVar[str]

    def __init__(self, setting: BenchSetting, matcher: str, old: Workload, new: Workload) -> None:
        self.name, self.old = matcher, old
        self.engine = Engine(Schema.from_dict(old.schema), matcher, **setting.options)
        self.matcher = self.engine.matcher
        self.changes = new.subscriptions.num_rows
        rng = np.random.default_rng(old.seed)
        self.removed = rng.permutation(old.subscriptions.num_rows)[: self.changes]

    @abstractmethod
    def prepare(self, first: int, last: int) -> None:
        """Prepare some changes."""

    @abstractmethod
    def remove(self, change: int) -> None:
        """Timed."""

    @abstractmethod
    def add(self, change: int) -> None:
        """Timed."""

    @abstractmethod
    def match(self, batch: EventBatch) -> object:
        """Timed."""

    @abstractmethod
    def follow(self, first: int, last: int) -> None:
        """Make the same changes in the reference."""

    @abstractmethod
    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        """The answers of the matcher and of the reference."""


def _churn(setting: BenchSetting, target: _ChurnTarget) -> Iterator[ChurnResult | str]:
    matcher, title = target.matcher, workload.variant(WORKLOAD).title
    events = target.old.events(setting.batch)
    batch = target.engine.encode(events)
    singles = [batch[at : at + 1] for at in range(len(batch))]
    some = affordable(setting, matcher, batch)
    before = matcher.nbytes / len(matcher)  # after a match: some matchers build their index then
    every = max(1, target.changes // _BATCHES)
    removed, added, alone, together = [], [], [], []
    compared = disagreements = 0
    for checkpoint in range(_CHECKPOINTS):
        yield f"{target.name}, through the {target.through}: {checkpoint + 1} of {_CHECKPOINTS}"
        first, last = (target.changes * at // _CHECKPOINTS for at in (checkpoint, checkpoint + 1))
        target.prepare(first, last)
        for change in range(first, last):
            removed.append(timed(partial(target.remove, change)))
            added.append(timed(partial(target.add, change)))
            if change % _SINGLE == 0:
                event = singles[change // _SINGLE % len(singles)]
                alone.append(timed(partial(target.match, event)))
            if change % every == every - 1:
                together.append(timed(partial(target.match, some)))
        target.follow(first, last)
        compared_events = events.slice(checkpoint * _COMPARED % len(events), _COMPARED)
        found = differences(*target.answers(compared_events))
        compared += len(compared_events)
        disagreements += found.missing
        if registry.entry(target.name).exact:
            disagreements += found.extra
    yield ChurnResult(
        CHURN,
        title,
        target.name,
        target.through,
        len(matcher),
        target.changes,
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
        reference(target.name),
        target.old.parameters,
    )


class _EngineTarget(_ChurnTarget):
    """Through the engine: removes ids, and adds conditions in text under new ids."""

    through = "engine"

    def __init__(self, setting: BenchSetting, matcher: str, old: Workload, new: Workload) -> None:
        super().__init__(setting, matcher, old, new)
        self._trusted = Engine(self.engine.schema, reference(matcher))
        for engine in (self.engine, self._trusted):
            engine.subscribe_table(old.subscriptions)
        self._ids = np.arange(self.changes) + len(self.engine)
        self._new = new.subscriptions.set_column(0, "id", pa.array(self._ids))
        self._removed_ids: list[int] = self.removed.tolist()
        self._texts: dict[int, str] = {}

    def prepare(self, first: int, last: int) -> None:
        texts = conditions(self._new.slice(first, last - first)).to_pylist()
        self._texts = dict(enumerate(texts, first))

    def remove(self, change: int) -> None:
        self.engine.unsubscribe(self._removed_ids[change])

    def add(self, change: int) -> None:
        self.engine.subscribe(self._texts[change], id=int(self._ids[change]))

    def match(self, batch: EventBatch) -> object:
        return self.engine.match_batch(batch).subscriptions

    def follow(self, first: int, last: int) -> None:
        for id in self._removed_ids[first:last]:
            self._trusted.unsubscribe(id)
        self._trusted.subscribe_table(self._new.slice(first, last - first))

    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        return self.engine.match_batch(events), self._trusted.match_batch(events)


class _MatcherTarget(_ChurnTarget):
    """Through the matcher alone: replaces clauses in their slots."""

    through = "matcher"

    def __init__(self, setting: BenchSetting, matcher: str, old: Workload, new: Workload) -> None:
        super().__init__(setting, matcher, old, new)
        self._trusted = registry.create(reference(matcher))
        terms, _ = clauses(self.engine.encoder, old.subscriptions)
        for each in (self.matcher, self._trusted):
            each.add(np.arange(terms.clauses), terms)
        self._new, _ = clauses(self.engine.encoder, new.subscriptions)
        self._ones: dict[int, tuple[NDArray[np.int64], Terms]] = {}

    def prepare(self, first: int, last: int) -> None:
        self._ones = {
            change: (self.removed[change : change + 1], self._new.take(np.array([change])))
            for change in range(first, last)
        }

    def remove(self, change: int) -> None:
        self.matcher.remove(self._ones[change][0])

    def add(self, change: int) -> None:
        self.matcher.add(*self._ones[change])

    def match(self, batch: EventBatch) -> object:
        return self.matcher.match(batch)

    def follow(self, first: int, last: int) -> None:
        slots = self.removed[first:last]
        self._trusted.remove(slots)
        self._trusted.add(slots, self._new.take(np.arange(first, last)))

    def answers(self, events: pa.Table) -> tuple[Matches, Matches]:
        batch = self.engine.encode(events)
        return self.matcher.match(batch), self._trusted.match(batch)
