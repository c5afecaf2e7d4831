"""Conditions: predicates, calls and value constraints joined by `and`, `or` and `not`.

Nodes carry their span in the text, for errors; conditions that differ only in spans are equal.
Nodes are plain records: `semantics` defines their meaning.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from tamis.errors import ConditionError, Span

ORDER = ("<", "<=", ">", ">=", "between")
SUBSET, SUPERSET = "subset of", "superset of"
MEMBERSHIP = ("=", "!=", "in", "contains", "excludes", SUBSET, SUPERSET, "exists", "missing")
IS_NULL = "is null"
"""The attribute is not bound, or to null only."""
IS_SCALAR = "is scalar"
"""Some value is a number, a text, a boolean or null, and not an object."""
OF_EVERY_DOMAIN = (IS_NULL, IS_SCALAR)
STATES = ("exists", "missing", *OF_EVERY_DOMAIN)
"""Comparators without a value."""
OF_KIND = "of kind"
"""A comparator of dynamic attributes: the value is of one of these kinds."""
SUBSTRING, REGULAR, WITHIN = "has substring", "matches", "within"
IGNORING_CASE = " ignoring case"
FOLDED = tuple(
    comparator + IGNORING_CASE
    for comparator in ("=", "!=", "in", "starts with", "ends with", SUBSTRING, "like")
)
"""Comparators of texts whose case was folded."""
TEXT = ("starts with", "ends with", "like", SUBSTRING, REGULAR, WITHIN, *FOLDED)
LISTS = ("in", "in" + IGNORING_CASE, SUBSET, SUPERSET, OF_KIND)
"""Comparators with a list of values."""
COMPARATORS = (*MEMBERSHIP, *ORDER, *TEXT, OF_KIND, *OF_EVERY_DOMAIN)
COMPLEMENTS = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The comparators of value constraints, each with its complement."""
SYNONYMS = {"==": "=", "<>": "!="}
COMPUTE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
SIGNS = tuple(COMPUTE)
NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


class Word(str):
    """A value written without quotes, such as `dining_table`. Equal to the quoted text."""

    __slots__ = ()


Constant = int | float | str | bool
Value = Constant | tuple[Constant, ...] | None


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Predicate:
    """attribute, comparator, value: true or false of an event.

    `value` is a tuple for `between` and those in `LISTS`, None for those in `STATES`.
    """

    attribute: str
    comparator: str
    value: Value = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Variable:
    """A variable, written `?name`, that operators bind; `name` has no question mark."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or NAME.fullmatch(self.name) is None:
            raise ConditionError(
                f"{self.name!r} is not a name of a variable",
                hint="a name starts with a letter, followed by letters and digits",
            )


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Arithmetic:
    """A sum, difference, product or quotient. `-?x` is `0 - ?x`."""

    sign: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=True, unsafe_hash=True)
class AttributeValue:
    """The value of an attribute in an expression, written `@name`."""

    name: str


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Duration:
    """A length of time, written `30min`, in microseconds; it may be negative.

    It is less than 2^63 either way, as a number is read without its sign.
    """

    microseconds: int

    def __post_init__(self) -> None:
        given = self.microseconds
        if type(given) is not int or abs(given) >= 2**63:
            raise ConditionError(f"{given!r} is not a number of microseconds in 64 bits")


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Now:
    """The moment of the event, written `now`.

    `moment` is None in a condition, and microseconds since 1970 where it is evaluated for an event.
    """

    moment: int | None = None


Expression = Constant | Variable | AttributeValue | Duration | Now | Arithmetic


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Call:
    """A call of an operator: `locIn(Bronx)`, `distanceFrom(Bronx, ?metres)`."""

    operator: str
    arguments: tuple[Constant | Variable, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class ValueConstraint:
    """A comparison of variables with each other or with constants: `?y > 2 * ?z`."""

    left: Expression
    comparator: str
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Comparison:
    """A comparison of attributes with each other: `sold_price < 2 * @reserve_price`."""

    left: Expression
    comparator: str
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Some:
    """One element of a list of structs satisfies a condition: `some l in lines (l.qty > 2)`.

    The names in `condition` are those of the element's attributes, without the variable.
    """

    variable: str
    attribute: str
    condition: Condition
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=True, unsafe_hash=True)
class NumberedSome(Predicate):
    """A `Some` as engines index it: the elements satisfy the condition of this number."""

    source: Some | None = field(default=None, compare=False, repr=False)


Leaf = Predicate | Comparison | Some | Call | ValueConstraint
LEAVES = (Predicate, Comparison, Some, Call, ValueConstraint)
"""The parts of a condition that have no parts."""


@dataclass(slots=True, eq=True, unsafe_hash=True)
class _Joined:
    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            word = type(self).__name__.lower()
            raise ConditionError(f"'{word}' joins two or more conditions, got {len(self.parts)}")


class And(_Joined):
    """All parts hold, with one value per attribute."""

    __slots__ = ()


class Or(_Joined):
    """At least one part holds."""

    __slots__ = ()


@dataclass(slots=True, eq=True, unsafe_hash=True)
class Not:
    """The complement, pushed down to the leaves."""

    part: Condition


Condition = Predicate | Comparison | Some | Call | ValueConstraint | And | Or | Not

if TYPE_CHECKING:  # the oldest supported Python has no defaults for type variables
    from typing_extensions import TypeVar

    Of = TypeVar("Of", default=Predicate, covariant=True)
else:
    from typing import TypeVar

    Of = TypeVar("Of")


class Literal(NamedTuple, Generic[Of]):
    """A leaf, or its complement if `positive` is False.

    `Literal` without a parameter is of an ordinary predicate, whose complement is within the domain
    of the attribute; `Literal[Call]` and `Literal[ValueConstraint]` are the others.
    """

    predicate: Of
    positive: bool


Clause = tuple[Literal[Any], ...]
"""A conjunction of literals. A subscription matches if one of its clauses does."""


class ClauseParts(NamedTuple):
    """The literals of a clause by kind."""

    ordinary: tuple[Literal, ...]
    calls: tuple[Literal[Call], ...]
    constraints: tuple[Literal[ValueConstraint], ...]
    comparisons: tuple[Literal[Comparison], ...]
    elements: tuple[Literal[Some], ...]


def parts_of(clause: Clause) -> ClauseParts:
    """Split a clause: predicates, calls, value constraints, comparisons, conditions on elements."""
    if all(isinstance(literal.predicate, Predicate) for literal in clause):
        return ClauseParts(clause, (), (), (), ())  # most clauses
    return ClauseParts(
        tuple(literal for literal in clause if isinstance(literal.predicate, Predicate)),
        tuple(literal for literal in clause if isinstance(literal.predicate, Call)),
        tuple(literal for literal in clause if isinstance(literal.predicate, ValueConstraint)),
        tuple(literal for literal in clause if isinstance(literal.predicate, Comparison)),
        tuple(literal for literal in clause if isinstance(literal.predicate, Some)),
    )


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Every predicate, call and value constraint of a condition, left to right.

    Not recursive. A part that a program shares is visited once. A `Some` is a leaf.
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
    """The variables of a leaf, left to right, with repetitions."""
    if isinstance(leaf, Call):
        yield from (given for given in leaf.arguments if isinstance(given, Variable))
    elif isinstance(leaf, ValueConstraint):
        yield from (each for each in operands(leaf) if isinstance(each, Variable))


Operand = Constant | Variable | AttributeValue | Duration | Now


def operands(leaf: ValueConstraint | Comparison) -> Iterator[Operand]:
    """The operands of both sides, left to right, with repetitions."""
    stack: list[Expression] = [leaf.right, leaf.left]
    while stack:
        node = stack.pop()
        if isinstance(node, Arithmetic):
            stack += (node.right, node.left)
        else:
            yield node


def attributes_of(leaf: Predicate | Comparison) -> tuple[str, ...]:
    """The attributes that a leaf looks at, each once."""
    if isinstance(leaf, Predicate):
        return (leaf.attribute,)
    named = (each.name for each in operands(leaf) if isinstance(each, AttributeValue))
    return tuple(dict.fromkeys(named))
