"""What a subscriber writes: predicates, calls and constraints joined by `and`, `or` and `not`.

The nodes carry the place in the text they were read from, for errors; two conditions that differ
only in that place are equal. They are plain records: what they mean is in `semantics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from tamis.errors import ConditionError, Span

ORDER = ("<", "<=", ">", ">=", "between")
MEMBERSHIP = ("=", "!=", "in", "contains", "excludes", "exists", "missing")
TEXT = ("starts with", "ends with", "like")
COMPARATORS = (*MEMBERSHIP, *ORDER, *TEXT)
COMPLEMENTS = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The comparators of value constraints, each with the one that `not` makes of it."""
SIGNS = ("+", "-", "*", "/")
NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


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
class Variable:
    """A name for what an operator gives, written `?name`; `name` is without the question mark."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or NAME.fullmatch(self.name) is None:
            raise ConditionError(
                f"{self.name!r} cannot be a variable's name",
                hint="one begins with a letter, and letters and digits follow",
            )


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Arithmetic:
    """A sum, difference, product or quotient. `-?x` is `0 - ?x`."""

    sign: str
    left: Expression
    right: Expression


Expression = Constant | Variable | Arithmetic


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Call:
    """An operator asked about the event: `locIn(Bronx)`, `distanceFrom(Bronx, ?metres)`."""

    operator: str
    arguments: tuple[Constant | Variable, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class ValueConstraint:
    """What the values of variables must be to each other or to constants: `?y > 2 * ?z`."""

    left: Expression
    comparator: str
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


Leaf = Predicate | Call | ValueConstraint
LEAVES = (Predicate, Call, ValueConstraint)
"""What `and`, `or` and `not` join: a part of a condition that has no parts."""


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
    """The complement, pushed down to the leaves."""

    part: Condition


Condition = Predicate | Call | ValueConstraint | And | Or | Not

if TYPE_CHECKING:  # a default is newer than the oldest Python that tamis runs on
    from typing_extensions import TypeVar

    Of = TypeVar("Of", default=Predicate, covariant=True)
else:
    from typing import TypeVar

    Of = TypeVar("Of")


class Literal(NamedTuple, Generic[Of]):
    """A leaf, or its complement where `positive` is False.

    `Literal` alone is that of an ordinary predicate, whose complement is within the attribute's
    domain; `Literal[Call]` and `Literal[ValueConstraint]` are the others.
    """

    predicate: Of
    positive: bool


Clause = tuple[Literal[Any], ...]
"""One conjunction, of leaves of all kinds. A subscription matches when any of its clauses does."""


class ClauseParts(NamedTuple):
    """The literals of a clause, sorted by what answers them."""

    ordinary: tuple[Literal, ...]
    calls: tuple[Literal[Call], ...]
    constraints: tuple[Literal[ValueConstraint], ...]


def parts_of(clause: Clause) -> ClauseParts:
    """What a clause asks of the matcher, of operators, and of the values that these give."""
    return ClauseParts(
        tuple(literal for literal in clause if isinstance(literal.predicate, Predicate)),
        tuple(literal for literal in clause if isinstance(literal.predicate, Call)),
        tuple(literal for literal in clause if isinstance(literal.predicate, ValueConstraint)),
    )


def _at_least_two(word: str, parts: tuple[Condition, ...]) -> None:
    if len(parts) < 2:
        raise ConditionError(f"'{word}' joins two or more conditions, got {len(parts)}")


def predicates(condition: Condition) -> Iterator[Predicate]:
    """Every ordinary predicate of a condition, left to right."""
    return (leaf for leaf in leaves(condition) if isinstance(leaf, Predicate))


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Every predicate, call and value constraint of a condition, left to right.

    Without recursion; a part that a program uses in several places is visited once.
    """
    stack: list[Condition] = [condition]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, LEAVES):
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Not):
            stack.append(node.part)
        else:
            stack.extend(reversed(node.parts))


def variables(leaf: Leaf) -> Iterator[Variable]:
    """The variables of a leaf, left to right, each as often as it stands there."""
    if isinstance(leaf, Call):
        yield from (given for given in leaf.arguments if isinstance(given, Variable))
    elif isinstance(leaf, ValueConstraint):
        stack: list[Expression] = [leaf.right, leaf.left]
        while stack:
            node = stack.pop()
            if isinstance(node, Variable):
                yield node
            elif isinstance(node, Arithmetic):
                stack += (node.right, node.left)
