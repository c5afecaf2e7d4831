"""Interned elementary predicates: each distinct predicate has an id and a reference count.

Free ids are reused before new ones are made. So the highest id never exceeds the largest number of
predicates held at one time. Subclasses decide how ids are looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int64s
from tamis.index.elementary_predicates import COMPARATORS, ElementaryPredicates
from tamis.index.growth import HoldsArrays, grown


class PredicatePlan(NamedTuple):
    """Predicates about to be added: their ids if known, and which are new."""

    cluster: Int64s
    constant: Int64s
    ids: Int64s  # -1 where the predicate is new
    order: Int64s  # positions of the new ones, sorted by cluster and constant
    first: Bools  # in that order: the first occurrence of each predicate

    @property
    def fresh(self) -> int:
        """The number of distinct new predicates."""
        return int(np.count_nonzero(self.first))


class PredicateIds(HoldsArrays, ABC):
    """Interned predicates with reference counts.

    The predicates with the same attribute and comparator form a cluster, numbered
    `attribute * COMPARATORS + comparator`.
    """

    def clear(self) -> None:
        self._uses = np.zeros(0, np.int64)
        self._cluster = np.zeros(0, np.int64)
        self._constant = np.zeros(0, np.int64)
        self._free: list[int] = []
        self.top = 0  # one more than the highest id ever used

    def __len__(self) -> int:
        """The number of distinct predicates."""
        return self.top - len(self._free)

    def plan(self, found: ElementaryPredicates) -> PredicatePlan:
        """Look up predicates that may be added. Changes nothing."""
        cluster, constant = _clusters(found), found.constant
        ids = self._find(cluster, constant)
        unknown = np.flatnonzero(ids < 0)
        order = unknown[np.lexsort((constant[unknown], cluster[unknown]))]
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(cluster[order]) != 0) | (constant[order][1:] != constant[order][:-1])
        return PredicatePlan(cluster, constant, ids, order, first)

    def top_after(self, plan: PredicatePlan) -> int:
        """The value of `top` after adding these predicates."""
        return self.top + max(0, plan.fresh - len(self._free))

    def add(self, plan: PredicatePlan) -> Int64s:
        """Add predicates and count a use of each. Returns their ids."""
        ids = plan.ids.copy()
        if len(plan.order):
            fresh = plan.order[plan.first]
            numbers = self._number(len(fresh))
            ids[plan.order] = numbers[np.cumsum(plan.first) - 1]
            self._cluster[numbers] = plan.cluster[fresh]
            self._constant[numbers] = plan.constant[fresh]
            self._insert(plan.cluster[fresh], plan.constant[fresh], numbers)
        np.add.at(self._uses, ids, 1)
        return ids

    def find(self, found: ElementaryPredicates) -> Int64s:
        """The id of each predicate, or -1 if it is not interned."""
        return self._find(_clusters(found), found.constant)

    def remove(self, ids: Int64s) -> None:
        """Release a use of each id. Ids without uses become free."""
        np.subtract.at(self._uses, ids, 1)
        gone = np.unique(ids[self._uses[ids] == 0])
        if len(gone):
            self._delete(self._cluster[gone], self._constant[gone], gone)
            self._free.extend(gone[::-1].tolist())

    def check(self) -> None:
        """Raise if the ids and the look-up structure disagree."""
        used = self._used()
        assert len(used) == len(self)
        assert not np.intersect1d(used, np.array(self._free, np.int64)).size
        assert (self._find(self._cluster[used], self._constant[used]) == used).all()

    def _used(self) -> Int64s:
        """The ids in use."""
        return np.flatnonzero(self._uses[: self.top])

    @abstractmethod
    def _find(self, cluster: Int64s, constant: Int64s) -> Int64s:
        """The id of each predicate, or -1 if it is not interned."""

    @abstractmethod
    def _insert(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        """Store new distinct predicates, sorted by cluster and constant."""

    @abstractmethod
    def _delete(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        """Remove predicates."""

    def _number(self, count: int) -> Int64s:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = np.arange(self.top, self.top + count - len(reused))
        self.top += len(fresh)
        for name in ("_uses", "_cluster", "_constant"):
            setattr(self, name, grown(getattr(self, name), self.top))
        return np.concatenate([np.array(reused, np.int64), fresh])


def _clusters(found: ElementaryPredicates) -> Int64s:
    return found.attribute.astype(np.int64) * COMPARATORS + found.comparator
