"""A clause, ready to be placed: what the matcher decides, and what operators are asked for."""

from __future__ import annotations

from typing import NamedTuple

from tamis.encode.clause import Constraint
from tamis.encode.encoder import Encoder
from tamis.engine.calls.clause_calls import ClauseCalls, collect_calls, predicate_of
from tamis.errors import ConditionError, NeverTrueError
from tamis.language import parse, to_text
from tamis.model.condition import And, Call, Clause, Condition, Literal, Not, parts_of
from tamis.operators.registry import Operators
from tamis.schedule.base import ON_FALSE, ON_TRUE


class CompiledClause(NamedTuple):
    """One clause of a condition."""

    constraints: tuple[Constraint, ...] = ()
    asked: ClauseCalls | None = None
    text: str = ""  # of what is asked, in the language


class CompiledCondition(NamedTuple):
    """The clauses of a condition, and the condition to keep: text only in the native language."""

    source: str | Condition
    clauses: list[CompiledClause]


def compile_clause(clause: Clause, encoder: Encoder, operators: Operators) -> CompiledClause:
    """A clause that has passed the type check; refuses one that can never hold."""
    ordinary, calls, constraints = parts_of(clause)
    folded = encoder.fold(ordinary)
    if not calls:
        return CompiledClause(folded)
    asked = collect_calls(calls, constraints)
    assert asked is not None
    for literal in calls:
        _check(literal.predicate, operators)
    _refuse_contradiction(asked, calls)
    return CompiledClause(folded, asked, _text((*calls, *constraints)))


def parse_calls(text: str) -> ClauseCalls:
    """What `CompiledClause.text` says."""
    condition = parse(text, limit=None)
    literals = condition.parts if isinstance(condition, And) else (condition,)
    clause = tuple(
        Literal(part.part, False) if isinstance(part, Not) else Literal(part, True)
        for part in literals
    )
    _, calls, constraints = parts_of(clause)
    asked = collect_calls(calls, constraints)
    assert asked is not None
    return asked


def _check(call: Call, operators: Operators) -> None:
    """Ask the operator whether it can do anything with these constants."""
    wrong = operators[call.operator].refusal(predicate_of(call)[0].arguments)
    if wrong is not None:
        raise ConditionError(wrong, span=call.span)


def _refuse_contradiction(asked: ClauseCalls, calls: tuple[Literal[Call], ...]) -> None:
    """`p() and not p()`: where there are variables, they may differ."""
    kills: dict[object, set[int]] = {}
    for asking in asked.calls:
        kills.setdefault(asking.predicate.key, set()).add(asking.kills)
    for call, _ in calls:
        if kills.get(predicate_of(call)[0].key, set()) >= {ON_FALSE, ON_TRUE}:
            shown = to_text(call)
            raise NeverTrueError(f"never true: {shown} and not {shown}", span=call.span)


def _text(literals: Clause) -> str:
    parts: tuple[Condition, ...] = tuple(
        literal.predicate if literal.positive else Not(literal.predicate) for literal in literals
    )
    return to_text(parts[0] if len(parts) == 1 else And(parts))
