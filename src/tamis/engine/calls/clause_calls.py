"""What clauses ask of operators: calls as numbered predicates, and how their bindings fit together.

Two calls are the same predicate when they name the same operator with the same constants at the
same places and the same pattern of variables: `p(?a, ?a)` is `p(?b, ?b)`, but not `p(?a, ?b)`.
Such a predicate is evaluated once an event, whatever its variables are called.

A value constraint over the variables of one call alone belongs to that call: of
`distanceFrom(Bronx, ?x) and ?x < 500` nothing else need be evaluated where no row is that near.
The operator is called once all the same for all that differ in such limits only.
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
    Call,
    Constant,
    Expression,
    Literal,
    ValueConstraint,
    Variable,
)
from tamis.model.operator import Rows, Signature
from tamis.model.printer import constant_text
from tamis.model.semantics import Answer
from tamis.schedule.base import NEVER, ON_FALSE, ON_TRUE

CONSTANT = -1  # in a pattern, where there is no variable
_PLAIN = {"number", "text"}  # kinds whose values are as `plain` makes them


class CallPredicate(NamedTuple):
    """A call with its variables numbered by first occurrence, and what it must give."""

    operator: str
    arguments: tuple[Any, ...]  # constants, and None where there is a variable
    pattern: tuple[int, ...]  # of each argument the number of its variable, or -1
    limits: tuple[str, ...] = ()  # constraints over its variables alone, in order
    tests: tuple[ValueTest, ...] = ()  # the same

    @property
    def key(self) -> Hashable:
        """Equal for the same predicate only. True, 1 and 1.0 are three: functions may differ."""
        given = tuple((type(each), each) for each in self.arguments)
        return self.operator, given, self.pattern, self.limits

    @property
    def text(self) -> str:
        """What `key` tells apart, as text: the same whatever variables are called.

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
        """What an operator gave, as rows over the variables; less what was not asked for."""
        return frozenset(self._fitting(signature, rows))

    def holds(self, signature: Signature, rows: Rows) -> bool:
        """Whether there are any `bindings`: looks at no more rows than it has to."""
        return any(True for _ in self._fitting(signature, rows))

    def _fitting(self, signature: Signature, rows: Rows) -> Iterable[Row]:
        """The bindings one after the other, perhaps some of them twice."""
        places = [self.pattern[at] for at in signature.free]
        kinds = {signature.parameters[at].kind for at in signature.free}
        found: Iterable[Row] = rows
        # Where each place is a variable and no value a boolean, rows are bindings as they are.
        if places != list(range(len(places))) or not kinds <= _PLAIN:
            constants = [self.arguments[at] for at in signature.free]
            found = _bound(places, [plain(each) for each in constants], rows)
        for test in self.tests:
            found = filter(test.holds, found)
        return found

    @property
    def unlimited(self) -> Self:
        """The same without its limits: what the operator is asked."""
        return self._replace(limits=(), tests=())

    def within(self, names: Sequence[str], limits: Sequence[Literal[ValueConstraint]]) -> Self:
        """The same with constraints over its variables, which are called so."""
        number = {name: at for at, name in enumerate(names)}
        tests = {_shown(each, number): compile_constraint(*each, number) for each in limits}
        return self._replace(limits=tuple(sorted(tests)), tests=tuple(tests.values()))


def _bound(places: Sequence[int], constants: Sequence[Any], rows: Rows) -> Iterator[Row]:
    """Rows over variables, of those that have the constants and one value for each variable."""
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
    """The predicate of a call, and the names of its variables in the order of their numbers."""
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
    """One literal of a clause: which of its predicates, and which variables are its columns."""

    predicate: CallPredicate
    variables: tuple[int, ...]
    positive: bool

    @property
    def kills(self) -> int:
        """When its outcome rules the clause out."""
        if self.positive:
            return ON_FALSE
        return NEVER if self.variables else ON_TRUE


class ClauseCalls(NamedTuple):
    """What one clause asks of operators."""

    calls: tuple[CallLiteral, ...]
    tests: tuple[ValueTest, ...]
    variables: int  # how many there are

    @property
    def joined(self) -> bool:
        """Whether its calls have to fit together; else it holds when each comes out right."""
        bound = [asking.variables for asking in self.calls if asking.variables]
        denied = any(asking.variables and not asking.positive for asking in self.calls)
        return bool(self.tests) or denied or len(set().union(*bound)) < sum(map(len, bound))

    def holds(self, tables: Sequence[frozenset[Row]]) -> bool:
        """Whether one substitution satisfies all of it, given the bindings of each call.

        To be asked of one that is `joined`, once all calls have come out right one by one.
        """
        return satisfiable(
            [
                BindingTable(asking.variables, rows)
                for asking, rows in zip(self.calls, tables, strict=True)
                if asking.positive and asking.variables
            ],
            [
                BindingTable(asking.variables, rows)
                for asking, rows in zip(self.calls, tables, strict=True)
                if not asking.positive and asking.variables
            ],
            self.tests,
            self.variables,
        )


def collect_calls(
    calls: Sequence[Literal[Call]], constraints: Sequence[Literal[ValueConstraint]]
) -> ClauseCalls | None:
    """What a clause asks of operators; None where it has no call."""
    if not calls:
        return None
    number: dict[str, int] = {}
    found: dict[Hashable, CallLiteral] = {}
    left = list(constraints)
    for literal in calls:
        predicate, names = predicate_of(literal.predicate)
        if literal.positive:
            mine = [each for each in left if variables_of(each.predicate) <= set(names)]
            left = [each for each in left if each not in mine]
            predicate = predicate.within(names, mine)
        variables = tuple(number.setdefault(name, len(number)) for name in names)
        asking = CallLiteral(predicate, variables, literal.positive)
        # Written twice, it is one. `f(1)` and `f(true)` are two, though equal in Python.
        found.setdefault((predicate.key, variables, literal.positive), asking)
    tests: list[ValueTest] = []
    for constraint, positive in left:
        tests.append(compile_constraint(constraint, positive, number))
    return ClauseCalls(tuple(found.values()), tuple(tests), len(number))


def fits(
    calls: Sequence[Literal[Call]],
    answers: Sequence[Answer],
    constraints: Sequence[Literal[ValueConstraint]],
) -> bool | None:
    """Whether one substitution satisfies a clause whose operators have all answered.

    For explanations: it comes to the same as matching does, and is None where matching gives up.
    """
    asked = collect_calls(calls, constraints)
    if asked is None:
        return True
    given = {predicate_of(each.call)[0].key: each for each in answers}
    tables: list[frozenset[Row]] = []
    for asking in asked.calls:
        signature, rows = given[asking.predicate.unlimited.key][1:]
        assert isinstance(rows, tuple)
        tables.append(asking.predicate.bindings(signature, rows))
        if asking.kills == (ON_TRUE if tables[-1] else ON_FALSE):
            return False
    try:
        return not asked.joined or asked.holds(tables)
    except JoinLimitError:
        return None


def variables_of(constraint: ValueConstraint) -> set[str]:
    """The names of the variables that a constraint mentions."""
    found: set[str] = set()
    stack: list[Expression] = [constraint.left, constraint.right]
    while stack:
        part = stack.pop()
        if isinstance(part, Variable):
            found.add(part.name)
        elif isinstance(part, Arithmetic):
            stack += [part.left, part.right]
    return found


def _shown(limit: Literal[ValueConstraint], number: dict[str, int]) -> str:
    """A constraint with its variables as numbers: the same text only for the same constraint."""

    def shown(part: Expression) -> str:
        if isinstance(part, Variable):
            return f"?{number[part.name]}"
        if isinstance(part, Arithmetic):
            return f"({shown(part.left)} {part.sign} {shown(part.right)})"
        return _constant(part)

    constraint, positive = limit
    text = f"{shown(constraint.left)} {constraint.comparator} {shown(constraint.right)}"
    return text if positive else f"not {text}"


def _constant(value: Constant) -> str:
    """In quotes even where it is a word: a quote begins no number and no variable."""
    return constant_text(str(value)) if isinstance(value, str) else constant_text(value)
