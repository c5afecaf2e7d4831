"""For each class of subscriptions, another one that covers it.

A subscription with one clause covers another if each clause of that lies in it. One with several
clauses may also cover a clause by the union of several of its own. Then it contains every point of
the clause: a few points name the candidates, and for each of those the clause is cut into what is
outside one clause after the other, until nothing is left. That takes a number of steps; a question
that takes too many is left undecided, and is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from tamis.encode.clause import EVENT_TYPE_POSITION, SOME
from tamis.encode.terms import Row, Terms, from_rows
from tamis.engine.redundancy.canonical_clauses import CanonicalClauses, ClauseForms
from tamis.engine.redundancy.cells import Spans
from tamis.engine.redundancy.consistent_events import Box, BoxQuestion, BudgetSpentError
from tamis.engine.redundancy.cover_tests import (
    LEAST,
    MOST,
    clear,
    contains_point,
    lay_out,
    lies_in,
)
from tamis.engine.redundancy.cover_tree import CoverAnswer, CoverTree, build_tree, search_around
from tamis.engine.redundancy.redundancy_report import Progress
from tamis.engine.redundancy.subscription_classes import SubscriptionClasses
from tamis.files.arrays import Int64s

_CHUNK = 1 << 14  # searches between two calls of progress
_AROUND = 256  # single clauses around the first clause of a subscription with several
_LOOKED = 200_000  # clauses that one search looks at
_CANDIDATES = 256  # subscriptions that may cover a clause by their union
_STEPS = 2_000  # for one question
_STEP = 256  # subscriptions between two calls of progress


class CoverSearch:
    """Searches among the classes, without those that are always true."""

    def __init__(
        self,
        forms: ClauseForms,
        canonical: CanonicalClauses,
        classes: SubscriptionClasses,
        spans: Int64s,
        left_out: set[int],
    ) -> None:
        self.forms, self.canonical, self.classes, self.spans = forms, canonical, classes, spans
        self.left_out = left_out
        self.looked = 0  # clauses looked at
        self.questions = 0  # about unions of clauses
        self.stands: dict[int, int] = {}  # a class -> one that matches the same events
        self.undecided: set[int] = set()  # classes some of whose questions took too long

    def clauses(self, of: int) -> list[int]:
        """The clauses of a class."""
        starts = self.classes.starts
        found: list[int] = self.classes.clauses[starts[of] : starts[of + 1]].tolist()
        return found

    def covers(self, progress: Progress) -> dict[int, int]:
        """A class that covers each class that is covered, and does not match the same events.

        Classes that match the same events are joined on the way.
        """
        kept = np.ones(len(self.classes.first), np.bool_)
        kept[list(self.left_out)] = False
        single, several = (
            np.flatnonzero(self.classes.single & kept),
            np.flatnonzero(~self.classes.single & kept),
        )
        found = self._by_single(single, progress)
        if len(several):
            found |= self._of_several(several, progress)
            found |= self._by_several(
                [each for each in single.tolist() if each not in found], progress
            )
        return found

    def lead(self, each: int) -> int:
        """The class that stands for all that match the same events."""
        while each in self.stands:
            each = self.stands[each]
        return each

    def join(self, one: int, other: int) -> None:
        """Two classes match the same events."""
        first, second = sorted((self.lead(one), self.lead(other)))
        if first != second:
            self.stands[second] = first

    # -- by a subscription with one clause ---------------------------------------------------------

    @cached_property
    def _class_of(self) -> Int64s:
        """The class of each clause that is a class of its own."""
        of = np.full(len(self.canonical.owner), -1, np.int64)
        single = np.flatnonzero(self.classes.single)
        of[self.classes.clauses[self.classes.starts[single]]] = single
        return of

    @cached_property
    def _singles(self) -> CoverTree:
        kept = np.ones(len(self.classes.single), np.bool_)
        kept[list(self.left_out)] = False
        chosen = np.flatnonzero(self.classes.single & kept)
        clauses = self.classes.clauses[self.classes.starts[chosen]]
        return build_tree(self.canonical.own, clauses, self.spans)

    def _by_single(self, searched: Int64s, progress: Progress) -> dict[int, int]:
        found: dict[int, int] = {}
        firsts = self._firsts(searched)
        # Neighbours in the tree are searched one after the other: they visit the same nodes.
        place = np.full(len(self.canonical.owner), -1, np.int64)
        place[self._singles.order] = np.arange(len(self._singles.order))
        order = np.argsort(place[firsts], kind="stable")
        for chosen, answer in self._searches(
            self._singles, firsts[order], progress, "Searching covers", 1
        ):
            mine = searched[order[chosen]]
            self.undecided.update(mine[answer.ended].tolist())
            hit = np.flatnonzero(np.diff(answer.starts))
            around = self._class_of[answer.found[answer.starts[hit]]]
            found.update(zip(mine[hit].tolist(), around.tolist(), strict=True))
        return found

    def _firsts(self, classes: Int64s) -> Int64s:
        """The first clause of each class."""
        return self.classes.clauses[self.classes.starts[classes]]

    def _searches(
        self, tree: CoverTree, queries: Int64s, progress: Progress, what: str, most: int
    ) -> Iterable[tuple[Int64s, CoverAnswer]]:
        """Search in chunks, several at a time."""
        chunks = [
            np.arange(at, min(at + _CHUNK, len(queries))) for at in range(0, len(queries), _CHUNK)
        ]

        def search(chunk: Int64s) -> CoverAnswer:
            return search_around(
                *(tree, self.canonical.own, self.canonical.settled),
                *(queries[chunk], queries[chunk], self.spans),
                most=most,
                budget=_LOOKED,
            )

        threads = min(len(os.sched_getaffinity(0)), 8)
        with ThreadPoolExecutor(threads) as pool:
            for chunk, answer in zip(chunks, pool.map(search, chunks), strict=True):
                self.looked += answer.looked
                progress(what, int(chunk[-1]) + 1, len(queries))
                yield chunk, answer

    def _around_all(self, clauses: Iterable[int], candidates: Int64s) -> Int64s:
        """Those of some clauses in which all other clauses lie."""
        for clause in clauses:
            if not len(candidates):
                break
            inside = self._laid_out(clause, candidates)
            candidates = candidates[inside]
        return candidates

    def _laid_out(self, clause: int, candidates: Int64s) -> Int64s:
        """The places of the candidates in which a clause lies."""
        settled, first, last, low, high = (self.canonical.settled, *self._layout)
        lay_out(settled, clause, self.spans, first, last, low, high)
        inside = [
            at
            for at, each in enumerate(candidates.tolist())
            if lies_in(settled, first, last, self.spans, self.canonical.own, each)
        ]
        clear(settled, clause, first, last, low, high)
        return np.array(inside, np.int64)

    @cached_property
    def _layout(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        width = len(self.spans)
        return (
            *(np.zeros(width, np.int64), np.zeros(width, np.int64)),
            *(np.full(width, LEAST, np.int64), np.full(width, MOST, np.int64)),
        )

    # -- by a subscription with several clauses ----------------------------------------------------

    @cached_property
    def _owner(self) -> dict[int, list[int]]:
        """The classes with several clauses that have a clause."""
        found: dict[int, list[int]] = {}
        for each in np.flatnonzero(~self.classes.single).tolist():
            if each not in self.left_out:
                for clause in self.clauses(each):
                    found.setdefault(clause, []).append(each)
        return found

    @cached_property
    def _several(self) -> CoverTree:
        return build_tree(self.canonical.own, np.array([*self._owner], np.int64), self.spans)

    def _of_several(self, several: Int64s, progress: Progress) -> dict[int, int]:
        """Covers of subscriptions with several clauses, by any other."""
        found: dict[int, int] = {}
        what, done = "Comparing several clauses", 0
        for chosen, answer in self._searches(
            self._singles, self._firsts(several), _silent, what, _AROUND
        ):
            some = several[chosen].tolist()
            self.undecided.update(several[chosen[answer.ended]].tolist())
            candidates = self._candidates(some)
            for at, each in enumerate(some):
                around = answer.found[answer.starts[at] : answer.starts[at + 1]]
                if len(around) == _AROUND:
                    self.undecided.add(each)
                fitting = self._around_all(self.clauses(each)[1:], around)
                found |= self._sorted_out(each, self._class_of[fitting].tolist(), candidates[at])
                if done % _STEP == 0:
                    progress(what, done, len(several))
                done += 1
        return found

    def _sorted_out(self, each: int, around: list[int], candidates: list[int]) -> dict[int, int]:
        """A class around another one, if there is; those that match the same events are joined."""
        if len(candidates) > _CANDIDATES:
            self.undecided.add(each)
        around += [at for at in candidates[:_CANDIDATES] if self.is_covered(each, at)]
        larger = None
        for at in around:
            if self.lead(at) == self.lead(each):
                continue
            if self._has_points(each, at) and self.is_covered(at, each):
                self.join(each, at)
            elif larger is None:
                larger = at
        return {} if larger is None else {each: larger}

    def _has_points(self, each: int, of: int) -> bool:
        """Whether a class contains the two points of another one."""
        first, last, low, high = self._layout
        for top in (False, True):
            rows = from_rows([self._point(self._firsts_of(of), high=top)])
            lay_out(rows, 0, self.spans, first, last, low, high)
            inside = any(
                contains_point(rows, first, last, self.canonical.own, clause)
                for clause in self.clauses(each)
            )
            clear(rows, 0, first, last, low, high)
            if not inside:
                return False
        return True

    def _firsts_of(self, each: int) -> int:
        return int(self.classes.clauses[self.classes.starts[each]])

    def _by_several(self, searched: list[int], progress: Progress) -> dict[int, int]:
        """Covers of subscriptions with one clause, by those with several."""
        found: dict[int, int] = {}
        for begin in range(0, len(searched), _CHUNK):
            some = searched[begin : begin + _CHUNK]
            progress("Searching unions", begin, len(searched))
            for each, candidates in zip(some, self._candidates(some), strict=True):
                others = [at for at in candidates if self.lead(at) != self.lead(each)]
                around = self._first_cover(each, others)
                if around is not None:
                    found[each] = around
        return found

    def _candidates(self, some: list[int]) -> list[list[int]]:
        """The classes that contain two points of the first clause of each."""
        common_to: list[set[int]] = []
        for high in (False, True):
            points = [self._point(self.clauses(each)[0], high=high) for each in some]
            rows = from_rows(points)
            queries = np.arange(len(points), dtype=np.int64)
            answer = search_around(
                *(self._several, self.canonical.own, rows, queries, np.full(len(points), -1)),
                self.spans,
                points=True,
                most=_LOOKED,
                budget=_LOOKED,
            )
            self.looked += answer.looked
            self.undecided.update(some[at] for at in answer.ended.tolist())
            for at, each in enumerate(some):
                hits = answer.found[answer.starts[at] : answer.starts[at + 1]].tolist()
                owners = {owner for clause in hits for owner in self._owner[clause]} - {each}
                if high:
                    common_to[at] &= owners
                else:
                    common_to.append(owners)
        return [sorted(each) for each in common_to]

    def _first_cover(self, each: int, candidates: list[int]) -> int | None:
        for candidate in candidates[:_CANDIDATES]:
            if self.is_covered(each, candidate):
                return candidate
        if len(candidates) > _CANDIDATES:
            self.undecided.add(each)
        return None

    def is_covered(self, each: int, by: int) -> bool:
        """Whether every event of a class is one of another. An open question is noted."""
        around = np.array(self.clauses(by), np.int64)
        open_ = [clause for clause in self.clauses(each) if not len(self._laid_out(clause, around))]
        if not open_:
            return True
        exact = [
            self.box(clause) for clause in around.tolist() if not self.canonical.opaque[clause]
        ]
        if len(exact) < 2:
            return False
        self.questions += 1
        question = BoxQuestion(self.forms.events, _STEPS)
        try:
            return all(question.covered(self.box(clause), exact) for clause in open_)
        except BudgetSpentError:
            self.undecided.add(each)
            return False

    def always_true(self, each: int) -> bool:
        """Whether the clauses of a class together hold for every event."""
        exact = [self.box(at) for at in self.clauses(each) if not self.canonical.opaque[at]]
        try:
            return BoxQuestion(self.forms.events, _STEPS).covered({}, exact)
        except BudgetSpentError:
            self.undecided.add(each)
            return False

    def box(self, clause: int) -> Box:
        """A clause as cells; of an opaque one, only what its terms say."""
        return self.forms.boxes(_rows_of(self.canonical.own, clause))

    @cached_property
    def _used(self) -> list[int]:
        """The attributes of clauses in subscriptions with several."""
        count = self.forms.count
        named = self.canonical.own.take(np.array([*self._owner], np.int64)).attribute
        found: list[int] = np.unique(named[named < 2 * count] % count).tolist()
        return found

    def _point(self, clause: int, *, high: bool) -> list[Row]:
        """An event of a clause: its lowest values, or its highest ones."""
        events, count = self.forms.events, self.forms.count
        settled = events.settle(self.box(clause))
        assert settled is not None
        marks = [row for row in _rows_of(self.canonical.settled, clause) if row[0] >= 2 * count]
        rows = [(at, 0, SOME, low, low) for at, _, _, low, _ in marks]
        for at in self._used:
            values: list[int] = []
            if at == EVENT_TYPE_POSITION and not events.free:  # all types that it may have
                spans = events.types_cell(settled).allowed
                values = [code for low, top in spans for code in range(low, top + 1)]
            else:
                cell = settled.box.get(at) or events.any_state(at)
                one = cell.one_value()
                must = not events.free and events.uses[at].mandatory & settled.types
                if must or not cell.absent:
                    hits = (one.allowed,) if one.binds else cell.hits
                    values = sorted({_end(hit, high) for hit in hits})
            rows += [(at, 0, SOME, value, value) for value in values]
            if not values:
                rows.append((at + count, 0, SOME, 0, 0))
        return sorted(rows)


def _silent(what: str, done: int, total: int) -> None:
    """No progress."""


def _end(spans: Spans, high: bool) -> int:
    return spans[-1][1] if high else spans[0][0]


def _rows_of(rows: Terms, clause: int) -> list[Row]:
    part = slice(rows.starts[clause], rows.starts[clause + 1])
    return list(zip(*(column[part].tolist() for column in rows[1:]), strict=True))
