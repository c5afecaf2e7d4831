"""The operator calls of a clause: as predicates, and as a join of their bindings.

Two calls are the same predicate if they have the same operator, the same constants and the same
pattern of variables: `p(?a, ?a)` is `p(?b, ?b)`, but not `p(?a, ?b)`. A predicate is evaluated once
per event, whatever the names of its variables.

A value constraint over the variables of one call is a limit of that call. If no row of
`distanceFrom(Bronx, ?x)` satisfies `?x < 500`, the rest of the clause need not be evaluated. One
call of the operator answers all predicates that differ only in their limits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from tamis.engine.calls.join import (
    BindingTable,
    JoinLimitError,
    Row,
    ValueTest,
    compile_constraint,
    plain,
    satisfiable,
)
from tamis.model.condition import (
    Arithmetic,
    AttributeValue,
    Call,
    Constant,
    Duration,
    Expression,
    Literal,
    Now,
    ValueConstraint,
    Variable,
    variables,
)
from tamis.model.operator import Rows, Signature
from tamis.model.operator_semantics import CallAnswer
from tamis.model.printer import constant_text
from tamis.schedule.base import NEVER, ON_FALSE, ON_TRUE

CONSTANT = -1  # in a pattern: a constant, not a variable
_PLAIN = {"number", "text"}  # kinds whose values `plain` returns unchanged


class CallPredicate(NamedTuple):
    """A call with its variables numbered by first occurrence, and its limits."""

    operator: str
    arguments: tuple[Any, ...]  # constants, and None for a variable
    pattern: tuple[int, ...]  # for each argument the number of its variable, or CONSTANT
    limits: tuple[str, ...] = ()  # constraints over its variables alone, sorted, as text
    tests: tuple[ValueTest, ...] = ()  # the same, compiled

    @property
    def key(self) -> Hashable:
        """Equal for equal predicates. True, 1 and 1.0 differ: a function may tell them apart."""
        given = tuple((type(each), each) for each in self.arguments)
        return self.operator, given, self.pattern, self.limits

    @property
    def text(self) -> str:
        """The predicate as text, which does not depend on the names of variables.

        >>> from tamis.language import parse
        >>> predicate_of(parse("near(Bronx, ?far, ?far)"))[0].text
        'near("Bronx", ?0, ?0)'
        """
        given = [
            _constant(constant) if number == CONSTANT else f"?{number}"
            for constant, number in zip(self.arguments, self.pattern, strict=True)
        ]
        return " and ".join([f"{self.operator}({', '.join(given)})", *self.limits])

    def bindings(self, signature: Signature, rows: Rows) -> frozenset[Row]:
        """The rows of an operator that match the call, as rows over its variables."""
        return frozenset(self._fitting(signature, rows))

    def holds(self, signature: Signature, rows: Rows) -> bool:
        """Whether there are `bindings`; stops at the first."""
        return any(True for _ in self._fitting(signature, rows))

    def _fitting(self, signature: Signature, rows: Rows) -> Iterable[Row]:
        """The bindings, lazily; some may repeat."""
        places = [self.pattern[at] for at in signature.free]
        kinds = {signature.parameters[at].kind for at in signature.free}
        found: Iterable[Row] = rows
        # If every place is a distinct variable and no value is a boolean, rows are bindings.
        if places != list(range(len(places))) or not kinds <= _PLAIN:
            constants = [self.arguments[at] for at in signature.free]
            found = _bound(places, [plain(each) for each in constants], rows)
        for test in self.tests:
            found = filter(test.holds, found)
        return found

    @property
    def unlimited(self) -> Self:
        """The predicate without its limits: what the operator is called with."""
        return self._replace(limits=(), tests=())

    def within(self, names: Sequence[str], limits: Sequence[Literal[ValueConstraint]]) -> Self:
        """The predicate with limits; `names` are the names of its variables, by number."""
        number = {name: at for at, name in enumerate(names)}
        tests = {_shown(each, number): compile_constraint(*each, number) for each in limits}
        return self._replace(limits=tuple(sorted(tests)), tests=tuple(tests.values()))


def _bound(places: Sequence[int], constants: Sequence[Any], rows: Rows) -> Iterator[Row]:
    """Project rows to variables; drop rows that differ in a constant or a repeated variable."""
    fixed = [(at, constants[at]) for at, number in enumerate(places) if number == CONSTANT]
    first = [places.index(number) for number in range(max(places, default=CONSTANT) + 1)]
    same = [
        (first[number], at)
        for at, number in enumerate(places)
        if number != CONSTANT and first[number] != at
    ]
    for row in rows:
        values = [plain(value) for value in row]
        if all(values[at] == constant for at, constant in fixed) and all(
            values[one] == values[other] for one, other in same
        ):
            yield tuple(values[at] for at in first)


def predicate_of(call: Call) -> tuple[CallPredicate, tuple[str, ...]]:
    """The predicate of a call, and the names of its variables by number."""
    names: dict[str, int] = {}
    pattern: list[int] = []
    arguments: list[Constant | None] = []
    for argument in call.arguments:
        if isinstance(argument, Variable):
            pattern.append(names.setdefault(argument.name, len(names)))
            arguments.append(None)
        else:
            pattern.append(CONSTANT)
            arguments.append(argument)
    return CallPredicate(call.operator, tuple(arguments), tuple(pattern)), tuple(names)


class CallLiteral(NamedTuple):
    """A call of a clause or its complement, and the clause's variables in its columns."""

    predicate: CallPredicate
    variables: tuple[int, ...]
    positive: bool

    @property
    def kills(self) -> int:
        """Which outcome makes the clause false."""
        if self.positive:
            return ON_FALSE
        return NEVER if self.variables else ON_TRUE


class ClauseCalls(NamedTuple):
    """The calls of one clause, and the value constraints over several of them."""

    calls: tuple[CallLiteral, ...]
    tests: tuple[ValueTest, ...]
    variables: int  # number of variables

    @property
    def joined(self) -> bool:
        """Whether a join is needed; otherwise the clause holds if each call does."""
        bound = [literal.variables for literal in self.calls if literal.variables]
        denied = any(literal.variables and not literal.positive for literal in self.calls)
        return bool(self.tests) or denied or len(set().union(*bound)) < sum(map(len, bound))

    def holds(self, tables: Sequence[frozenset[Row]]) -> bool:
        """Whether one substitution satisfies all calls, given the bindings of each.

        Only needed if `joined`, after every call has held by itself.
        """
        present: list[BindingTable] = []
        absent: list[BindingTable] = []
        for literal, rows in zip(self.calls, tables, strict=True):
            if literal.variables:
                side = present if literal.positive else absent
                side.append(BindingTable(literal.variables, rows))
        return satisfiable(present, absent, self.tests, self.variables)


def collect_calls(
    calls: Sequence[Literal[Call]], constraints: Sequence[Literal[ValueConstraint]]
) -> ClauseCalls | None:
    """Collect the calls of a clause; None if it has no call."""
    if not calls:
        return None
    number: dict[str, int] = {}
    found: dict[Hashable, CallLiteral] = {}
    left = list(constraints)
    for literal in calls:
        predicate, names = predicate_of(literal.predicate)
        if literal.positive:
            limits = [each for each in left if variable_names(each.predicate) <= set(names)]
            left = [each for each in left if each not in limits]
            predicate = predicate.within(names, limits)
        numbers = tuple(number.setdefault(name, len(number)) for name in names)
        call = CallLiteral(predicate, numbers, literal.positive)
        # Repeated calls are one. `f(1)` and `f(true)` are two, though equal in Python.
        found.setdefault((predicate.key, numbers, literal.positive), call)
    tests = tuple(compile_constraint(constraint, positive, number) for constraint, positive in left)
    return ClauseCalls(tuple(found.values()), tests, len(number))


def fits(
    calls: Sequence[Literal[Call]],
    answers: Sequence[CallAnswer],
    constraints: Sequence[Literal[ValueConstraint]],
) -> bool | None:
    """Whether one substitution satisfies a clause whose operators have all answered.

    Explanations use it: the result equals that of matching, and is None if matching gives up.
    """
    clause = collect_calls(calls, constraints)
    if clause is None:
        return True
    given = {predicate_of(each.call)[0].key: each for each in answers}
    tables: list[frozenset[Row]] = []
    for literal in clause.calls:
        signature, rows = given[literal.predicate.unlimited.key][1:]
        assert isinstance(rows, tuple)
        tables.append(literal.predicate.bindings(signature, rows))
        if literal.kills == (ON_TRUE if tables[-1] else ON_FALSE):
            return False
    try:
        return not clause.joined or clause.holds(tables)
    except JoinLimitError:
        return None


def variable_names(constraint: ValueConstraint) -> set[str]:
    """The names of the variables in a constraint."""
    return {variable.name for variable in variables(constraint)}


def _shown(limit: Literal[ValueConstraint], number: dict[str, int]) -> str:
    """A constraint with its variables as numbers; equal texts mean equal constraints."""

    def shown(part: Expression) -> str:
        if isinstance(part, Variable):
            return f"?{number[part.name]}"
        if isinstance(part, Arithmetic):
            return f"({shown(part.left)} {part.sign} {shown(part.right)})"
        assert not isinstance(part, AttributeValue | Duration | Now)  # the type check refuses it
        return _constant(part)

    constraint, positive = limit
    text = f"{shown(constraint.left)} {constraint.comparator} {shown(constraint.right)}"
    return text if positive else f"not {text}"


def _constant(value: Constant) -> str:
    """A constant as text; words too are quoted, so that no text looks like a number."""
    return constant_text(str(value)) if isinstance(value, str) else constant_text(value)
