"""A residual as a program: the textbook's short-circuit code for `and`, `or` and `not`.

An instruction looks at one interval of codes, and names the instruction to go on with if a value of
the event is inside, and the one if not. The program is written from its end, so that both are known
when an instruction is written. It runs from its last instruction down; every step goes further
down, so it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tamis.encode.clause import MISSING, NONE, SOME, SPECIAL_COMPARATORS, Constraint
from tamis.encode.encoder import Encoder
from tamis.engine.residuals.ages import age
from tamis.engine.residuals.special_tests import SpecialTest
from tamis.errors import NeverTrueError
from tamis.language.normal_form import PartialClause, all_literals, as_contains, leaf_cases
from tamis.model.condition import (
    SUBSET,
    SUPERSET,
    And,
    Comparison,
    Condition,
    Literal,
    Not,
    Or,
    Predicate,
    attributes_of,
)
from tamis.model.printer import to_text

ACCEPT, REJECT = -1, -2
VALUE, NOT_ANY, MISSES, ANY, SPECIAL, AGE = range(6)
"""Kinds of instruction: the chosen value is inside; the attribute is bound and no value is inside;
it is not bound; some value is inside; a test that is no interval holds; the difference of the
chosen value and the moment of the event is inside. The first three have the numbers of `SOME`,
`NONE` and `MISSING`."""
assert (VALUE, NOT_ANY, MISSES) == (SOME, NONE, MISSING)


class Step(NamedTuple):
    """An instruction: its kind, and where to go on if it holds, or else."""

    kind: int
    yes: int
    no: int


class Program(NamedTuple):
    """The instructions of a residual. Those with intervals take theirs in order.

    The intervals of all `constraints`, one after the other, belong to the steps that are not
    `SPECIAL`; the tests to those that are.
    """

    steps: list[Step]
    constraints: list[Constraint]
    tests: list[SpecialTest]


class ResidualCompiler:
    """Compiles the residuals of the clauses of one condition, most of which are the same."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._ends: dict[tuple[tuple[int, bool], ...], _ProgramEnd] = {}

    def program(self, clause: PartialClause, folded: Iterable[Constraint]) -> Program | None:
        """The program of a clause's residual, or None if it has none.

        One value of an attribute must satisfy the literals and the residual. So the program repeats
        what the clause says of attributes that it reads; `folded` are the constraints of the
        clause. Raises a `NeverTrueError` if no branch of the residual can hold.
        """
        if not clause.residual:
            return None
        key = tuple((id(part), positive) for part, positive in clause.residual)
        if key not in self._ends:
            self._ends[key] = _write_end(clause.residual, self._encoder)
        end = self._ends[key]
        again = [
            literal
            for literal in clause.literals
            if isinstance(literal.predicate, Predicate) and literal.predicate.attribute in end.read
        ]
        # Constraints do not tell a test of the set of values from a test of one value.
        special = {
            literal.predicate.attribute
            for literal in again
            if literal.predicate.comparator in SPECIAL_COMPARATORS
        }
        writer = _Writer(self._encoder, end.program)
        start = writer.conjunction(
            (literal for literal in again if literal.predicate.attribute in special),
            end.start,
            REJECT,
        )
        once = {self._encoder.positions[name] for name in end.read - special}
        for constraint in folded:
            if constraint.attribute in once:
                start = writer.intervals(constraint, SOME, start, REJECT)
        return writer.program()


class _ProgramEnd(NamedTuple):
    """The end of a program, which is its residual alone: where it begins and what it reads."""

    program: Program
    start: int
    read: set[str]


def _write_end(residual: tuple[Literal[Condition], ...], encoder: Encoder) -> _ProgramEnd:
    writer = _Writer(encoder)
    start = writer.conjunction(residual, ACCEPT, REJECT)
    if start == REJECT:
        assert writer.refused is not None
        raise writer.refused
    leaves = all_literals(residual)
    read = {name for leaf in leaves for name in attributes_of(leaf.predicate)}
    return _ProgramEnd(writer.program(), start, read)


class _Writer:
    """Writes a program backwards. Its methods return the instruction to begin with."""

    def __init__(self, encoder: Encoder, end: Program | None = None) -> None:
        self.encoder = encoder
        self.steps: list[Step] = [] if end is None else [*end.steps]
        self.constraints: list[Constraint] = [] if end is None else [*end.constraints]
        self.tests: list[SpecialTest] = [] if end is None else [*end.tests]
        self.refused: NeverTrueError | None = None

    def program(self) -> Program:
        return Program(self.steps, self.constraints, self.tests)

    def conjunction(self, parts: Iterable[Literal[Condition]], yes: int, no: int) -> int:
        written = len(self.steps), len(self.constraints), len(self.tests)
        for part in reversed(list(parts)):
            yes = self.node(part, yes, no)
            if yes == no:  # never true: take back what was written
                del self.steps[written[0] :], self.constraints[written[1] :]
                del self.tests[written[2] :]
                break
        return yes

    def disjunction(self, parts: Iterable[Literal[Condition]], yes: int, no: int) -> int:
        for part in reversed(list(parts)):
            no = self.node(part, yes, no)
        return no

    def node(self, given: Literal[Condition], yes: int, no: int) -> int:
        node, positive = given
        if isinstance(node, Not):
            return self.node(Literal(node.part, not positive), yes, no)
        if isinstance(node, Predicate) and node.comparator == SUPERSET:
            return self.node(Literal(as_contains(node), positive), yes, no)
        if isinstance(node, Predicate):
            for case in reversed(leaf_cases(Literal(node, positive))):
                no = self.leaf(case, yes, no)
            return no
        if isinstance(node, Comparison):
            found = age(node, positive)
            if found is not None and found.intervals:
                constraint = found.constraint(self.encoder.positions[found.attribute])
                return self.intervals(constraint, AGE, yes, no)
            if found is not None:
                text = to_text(node if positive else Not(node))
                self.refused = self.refused or NeverTrueError(f"never true: {text}", span=node.span)
                return no
            return self.special(SpecialTest.of_comparison(node, positive), yes, no)
        assert isinstance(node, And | Or)
        parts = [Literal(part, positive) for part in node.parts]
        if isinstance(node, And) == positive:
            return self.conjunction(parts, yes, no)
        return self.disjunction(parts, yes, no)

    def special(self, test: SpecialTest, yes: int, no: int) -> int:
        self.steps.append(Step(SPECIAL, yes, no))
        self.tests.append(test)
        return len(self.steps) - 1

    def leaf(self, literal: Literal, yes: int, no: int) -> int:
        try:
            (constraint,) = self.encoder.fold((literal,))
        except NeverTrueError as error:
            self.refused = self.refused or error
            return no
        if constraint.patterns:
            yes = self.special(SpecialTest((literal.predicate.attribute,), constraint), yes, no)
        kind = constraint.kind
        if kind == SOME and literal.predicate.comparator in ("contains", "excludes", SUBSET):
            kind = ANY
        return self.intervals(constraint._replace(patterns=()), kind, yes, no)

    def intervals(self, constraint: Constraint, kind: int, yes: int, no: int) -> int:
        for _ in constraint.intervals or (None,):
            self.steps.append(Step(kind, yes, no))
            if kind == NOT_ANY:
                yes = len(self.steps) - 1
            else:
                no = len(self.steps) - 1
        self.constraints.append(constraint)
        return len(self.steps) - 1
