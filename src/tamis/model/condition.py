"""What a subscriber writes: predicates joined by `and`, `or` and `not`.

The nodes carry the place in the text they were read from, for errors; two conditions that differ
only in that place are equal. They are plain records: what they mean is in `semantics`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.errors import ConditionError, Span

ORDER = ("<", "<=", ">", ">=", "between")
MEMBERSHIP = ("=", "!=", "in", "contains", "excludes", "exists", "missing")
TEXT = ("starts with", "ends with", "like")
COMPARATORS = (*MEMBERSHIP, *ORDER, *TEXT)


class Word(str):
    """A value written without quotes, such as `dining_table`. Equal to the quoted text."""

    __slots__ = ()


Constant = int | float | str | bool
Value = Constant | tuple[Constant, ...] | None


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Predicate:
    """attribute, comparator, value: the smallest thing that is true or false of an event.

    `value` is a tuple for `in` and `between`, None for `exists` and `missing`.
    """

    attribute: str
    comparator: str
    value: Value = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class And:
    """All parts hold, with one value per attribute."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _at_least_two("and", self.parts)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _at_least_two("or", self.parts)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Not:
    """The complement, pushed down to the predicates."""

    part: Condition


Condition = Predicate | And | Or | Not


class Literal(NamedTuple):
    """A predicate, or its complement within the attribute's domain where `positive` is False."""

    predicate: Predicate
    positive: bool


Clause = tuple[Literal, ...]
"""One conjunction. A subscription matches when any of its clauses does."""


def _at_least_two(word: str, parts: tuple[Condition, ...]) -> None:
    if len(parts) < 2:
        raise ConditionError(f"'{word}' joins two or more conditions, got {len(parts)}")


def predicates(condition: Condition) -> Iterator[Predicate]:
    """Every predicate of a condition, left to right, without recursion.

    A part that a program uses in several places is visited once.
    """
    stack: list[Condition] = [condition]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, Predicate):
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Not):
            stack.append(node.part)
        else:
            stack.extend(reversed(node.parts))
