"""What a clause says of one attribute, as a set of states; and exact operations on such sets.

A state of an attribute is: not bound, or bound to a set of values. A `Cell` describes states; a
conjunction of predicates on one attribute is a cell, and so is what is left of a cell outside
another one, in a few pieces. Values are dense codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Spans = tuple[tuple[int, int], ...]
"""Closed intervals of codes, sorted, with a code between any two."""


def united(spans: Iterable[tuple[int, int]]) -> Spans:
    """The codes in any interval.

    >>> united([(4, 6), (1, 2), (3, 3), (9, 8)])
    ((1, 6),)
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] <= span[1]):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def common(left: Spans, right: Spans) -> Spans:
    """The codes in both.

    >>> common(((1, 5), (8, 9)), ((4, 8),))
    ((4, 5), (8, 8))
    """
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def outside(spans: Spans, bottom: int, top: int) -> Spans:
    """The codes from bottom to top in none of the intervals.

    >>> outside(((1, 2), (5, 9)), 0, 9)
    ((0, 0), (3, 4))
    """
    found: list[tuple[int, int]] = []
    at = bottom
    for low, high in spans:
        if at < low:
            found.append((at, low - 1))
        at = high + 1
    if at <= top:
        found.append((at, top))
    return tuple(found)


def without(left: Spans, right: Spans) -> Spans:
    """The codes in the first that are not in the second."""
    if not left or not right:
        return left
    return common(left, outside(right, left[0][0], left[-1][1]))


class Cell(NamedTuple):
    """Not bound, if `absent`; or bound to allowed values only, with one of them in each of `hits`.

    Nothing is bound if `allowed` is empty. All of `hits` lie in `allowed`.
    """

    absent: bool
    allowed: Spans
    hits: tuple[Spans, ...] = ()

    @property
    def binds(self) -> bool:
        """Whether some state is bound."""
        return bool(self.allowed) and all(self.hits)

    @property
    def empty(self) -> bool:
        return not self.absent and not self.binds

    def bound(self) -> Cell:
        """The states that are bound."""
        return Cell(False, self.allowed, self.hits)

    def one_value(self) -> Cell:
        """The states with at most one value."""
        values = self.allowed
        for hit in self.hits:
            values = common(values, hit)
        return Cell(self.absent, values)

    def allowing(self, values: Spans) -> Cell:
        """The bound states all of whose values are among these."""
        hits = tuple(common(hit, values) for hit in self.hits)
        return Cell(False, common(self.allowed, values), hits)

    def hitting(self, values: Spans) -> Cell:
        """The bound states with one of these values."""
        return Cell(False, self.allowed, (*self.hits, common(self.allowed, values)))

    def simplest(self) -> Cell:
        """The same states, written in one way only."""
        if not self.binds:
            return Cell(self.absent, ())
        hits = sorted(
            {
                hit
                for hit in self.hits
                if hit != self.allowed
                and not any(other != hit and not without(other, hit) for other in self.hits)
            }
        )
        return Cell(self.absent, self.allowed, tuple(hits))

    def intersect(self, other: Cell) -> Cell:
        """The states in both."""
        found = self.allowing(other.allowed)
        for hit in other.hits:
            found = found.hitting(hit)
        return found._replace(absent=self.absent and other.absent)

    def minus(self, other: Cell) -> list[Cell]:
        """The states outside another cell, as pieces that may overlap."""
        pieces: list[Cell] = []
        if self.absent and not other.absent:
            pieces.append(Cell(True, ()))
        if not self.binds:
            return pieces
        if not other.binds:
            return [*pieces, self.bound()]
        foreign = without(self.allowed, other.allowed)
        if foreign:
            pieces.append(self.hitting(foreign))
        pieces += [self.allowing(without(self.allowed, hit)) for hit in other.hits]
        return [piece for piece in pieces if not piece.empty]
