"""Compiled conditions: clauses of constraints for the matcher, and calls for operators."""

from __future__ import annotations

from typing import NamedTuple

from tamis.encode.clause import Constraint
from tamis.encode.encoder import Encoder
from tamis.engine.calls.clause_calls import ClauseCalls, collect_calls, predicate_of
from tamis.engine.calls.contradiction import refuse_contradiction
from tamis.errors import ConditionError, NeverTrueError
from tamis.language import expand, parse, to_text
from tamis.language.dialects.registry import NATIVE, check_condition, translate
from tamis.model.condition import And, Call, Clause, Condition, Literal, Not, parts_of
from tamis.operators.registry import Operators
from tamis.schedule.base import ON_FALSE, ON_TRUE


class CompiledClause(NamedTuple):
    """One clause of a condition."""

    constraints: tuple[Constraint, ...] = ()
    calls: ClauseCalls | None = None
    text: str = ""  # the calls in the native language


class CompiledCondition(NamedTuple):
    """The clauses of a condition, and the condition to keep: text only in the native language."""

    source: str | Condition
    clauses: list[CompiledClause]


def compile_condition(
    condition: str | Condition, encoder: Encoder, operators: Operators, language: str
) -> CompiledCondition:
    """Compile a condition. Every refusal of a condition happens here."""
    schema = encoder.schema
    text = condition if isinstance(condition, str) else None
    parsed = condition if text is None else translate(text, schema, language)
    if not isinstance(parsed, Condition):
        raise ConditionError(f"a condition is text, got {type(condition).__name__}")
    check_condition(parsed, schema, operators.signatures, text, language)
    try:
        clauses = expand(parsed)
        for clause in clauses:
            refuse_contradiction(clause)
        compiled = [compile_clause(clause, encoder, operators) for clause in clauses]
    except ConditionError as error:
        raise error.with_text(text) from None
    return CompiledCondition(condition if language == NATIVE else parsed, compiled)


def compile_clause(clause: Clause, encoder: Encoder, operators: Operators) -> CompiledClause:
    """Compile a clause that has passed the type check; refuse one that can never hold."""
    ordinary, calls, constraints = parts_of(clause)
    folded = encoder.fold(ordinary)
    if not calls:
        return CompiledClause(folded)
    collected = collect_calls(calls, constraints)
    assert collected is not None
    for literal in calls:
        _check(literal.predicate, operators)
    _refuse_contradiction(collected, calls)
    return CompiledClause(folded, collected, _text((*calls, *constraints)))


def parse_calls(text: str) -> ClauseCalls:
    """The calls that `CompiledClause.text` describes."""
    condition = parse(text, limit=None)
    literals = condition.parts if isinstance(condition, And) else (condition,)
    clause = tuple(
        Literal(part.part, False) if isinstance(part, Not) else Literal(part, True)
        for part in literals
    )
    _, calls, constraints = parts_of(clause)
    collected = collect_calls(calls, constraints)
    assert collected is not None
    return collected


def _check(call: Call, operators: Operators) -> None:
    """Refuse constants that the operator refuses."""
    wrong = operators[call.operator].refusal(predicate_of(call)[0].arguments)
    if wrong is not None:
        raise ConditionError(wrong, span=call.span)


def _refuse_contradiction(collected: ClauseCalls, calls: tuple[Literal[Call], ...]) -> None:
    """Refuse `p() and not p()`. With variables it is no contradiction: they may differ."""
    kills: dict[object, set[int]] = {}
    for literal in collected.calls:
        kills.setdefault(literal.predicate.key, set()).add(literal.kills)
    for call, _ in calls:
        if kills.get(predicate_of(call)[0].key, set()) >= {ON_FALSE, ON_TRUE}:
            shown = to_text(call)
            raise NeverTrueError(f"never true: {shown} and not {shown}", span=call.span)


def _text(literals: Clause) -> str:
    parts: tuple[Condition, ...] = tuple(
        literal.predicate if literal.positive else Not(literal.predicate) for literal in literals
    )
    return to_text(parts[0] if len(parts) == 1 else And(parts))
