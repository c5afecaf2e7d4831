"""Compiled conditions: clauses of constraints for the matcher, and calls for operators.

A clause with value constraints that no value satisfies, as `?n < 3 and ?n > 5`, is refused. Only
comparisons of one variable with a constant are examined. Contradictions between several variables,
or in arithmetic, are not found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tamis.encode.clause import Constraint, Folded, never_true
from tamis.encode.encoder import Encoder
from tamis.engine.calls.clause_calls import ClauseCalls, collect_calls, predicate_of, variable_names
from tamis.engine.calls.join import Bound, compile_constraint, kind_of
from tamis.engine.residuals.program import Program, ResidualCompiler
from tamis.errors import ConditionError, NeverTrueError
from tamis.language import check_size, expand, parse, to_text
from tamis.language.dialects.registry import NATIVE, check_condition, translate
from tamis.language.normal_form import PartialClause
from tamis.model.condition import (
    And,
    Call,
    Clause,
    Condition,
    Literal,
    Not,
    NumberedSome,
    Or,
    Some,
    ValueConstraint,
    parts_of,
)
from tamis.model.elements.structs import list_name
from tamis.model.open_schema import schema_for
from tamis.model.times.moments import with_now
from tamis.operators.registry import Operators
from tamis.schedule.base import ON_FALSE, ON_TRUE

_LOW = ("=", ">", ">=")
_HIGH = ("=", "<", "<=")


class CompiledClause(NamedTuple):
    """One clause of a condition."""

    constraints: tuple[Constraint, ...] = ()
    calls: ClauseCalls | None = None
    text: str = ""  # the calls in the native language
    residual: Program | None = None


class CompiledCondition(NamedTuple):
    """The clauses of a condition, and the condition to keep: text only in the native language."""

    source: str | Condition
    clauses: list[CompiledClause]


def compile_condition(
    condition: str | Condition, encoder: Encoder, operators: Operators, language: str, stored: bool
) -> CompiledCondition:
    """Compile a condition. Every refusal of a condition happens here."""
    schema = encoder.schema
    text = condition if isinstance(condition, str) else None
    parsed = condition if text is None else translate(text, schema, language)
    if not isinstance(parsed, Condition):
        raise ConditionError(f"a condition is text, got {type(condition).__name__}")
    if schema.is_open:
        check_size(parsed)  # before looking at each of a million predicates
        schema = schema_for(schema, parsed, operators.signatures)
        if schema is not encoder.schema:
            encoder.extend(schema)
    check_condition(parsed, schema, operators.signatures, text, language, stored=stored)
    parsed = with_now(parsed, schema)
    try:
        indexed = number_elements(parsed, encoder) if encoder.elements else parsed
        compiled = _compile_clauses(expand(indexed), encoder, operators)
    except ConditionError as error:
        raise error.with_text(text) from None
    return CompiledCondition(condition if language == NATIVE else parsed, compiled)


def number_elements(condition: Condition, encoder: Encoder) -> Condition:
    """A condition with numbers in place of conditions on elements: `items contains 3`."""
    if isinstance(condition, Some):
        name, span = list_name(condition.attribute, encoder.schema), condition.span
        number = encoder.elements[encoder.positions[name]].number(condition.condition)
        return NumberedSome(name, "contains", number, span, condition)
    if isinstance(condition, Not):
        return Not(number_elements(condition.part, encoder))
    if isinstance(condition, And | Or):
        parts = tuple(number_elements(part, encoder) for part in condition.parts)
        return type(condition)(parts)
    return condition


def _compile_clauses(
    clauses: list[PartialClause], encoder: Encoder, operators: Operators
) -> list[CompiledClause]:
    """Compile clauses, without those that can never hold; at least one must be left."""
    found: list[CompiledClause] = []
    refused: list[NeverTrueError] = []
    known: Folded | None = {} if len(clauses) > 1 else None
    residuals = ResidualCompiler(encoder)
    for clause in clauses:
        try:
            found.append(_compile_clause(clause, encoder, operators, residuals, known))
        except NeverTrueError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _compile_clause(
    clause: PartialClause,
    encoder: Encoder,
    operators: Operators,
    residuals: ResidualCompiler,
    known: Folded | None,
) -> CompiledClause:
    """Compile a clause that has passed the type check; refuse one that can never hold."""
    ordinary, calls, constraints, *_ = parts_of(clause.literals)
    if constraints:
        refuse_contradiction(constraints)
    folded = encoder.fold(ordinary, known)
    residual = residuals.program(clause, folded)
    if not calls:
        return CompiledClause(folded, residual=residual)
    collected = collect_calls(calls, constraints)
    assert collected is not None
    for literal in calls:
        _check(literal.predicate, operators)
    _refuse_opposites(collected, calls)
    return CompiledClause(folded, collected, _text((*calls, *constraints)), residual)


def parse_calls(text: str) -> ClauseCalls:
    """The calls that `CompiledClause.text` describes."""
    condition = parse(text, limit=None)
    literals = condition.parts if isinstance(condition, And) else (condition,)
    clause = tuple(
        Literal(part.part, False) if isinstance(part, Not) else Literal(part, True)
        for part in literals
    )
    _, calls, constraints, *_ = parts_of(clause)
    collected = collect_calls(calls, constraints)
    assert collected is not None
    return collected


def _check(call: Call, operators: Operators) -> None:
    """Refuse constants that the operator refuses."""
    wrong = operators[call.operator].refusal(predicate_of(call)[0].arguments)
    if wrong is not None:
        raise ConditionError(wrong, span=call.span)


def _refuse_opposites(collected: ClauseCalls, calls: tuple[Literal[Call], ...]) -> None:
    """Refuse `p() and not p()`. With variables this may hold: their values may differ."""
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


def refuse_contradiction(constraints: Iterable[Literal[ValueConstraint]]) -> None:
    """Raise a `NeverTrueError` if no value of some variable satisfies all its constraints."""
    bounds: dict[str, list[tuple[Literal[ValueConstraint], Bound]]] = {}
    for literal in constraints:
        names = variable_names(literal.predicate)
        if len(names) == 1:
            (name,) = names
            bound = compile_constraint(*literal, {name: 0}).bound
            if bound is not None:
                bounds.setdefault(name, []).append((literal, bound))
    for each in bounds.values():
        if not _satisfiable([bound for _, bound in each]):
            raise never_true([literal for literal, _ in each])


def _satisfiable(bounds: list[Bound]) -> bool:
    """Whether some value satisfies all bounds. Between two different values lies a third."""
    kinds = {kind_of(bound.constant) for bound in bounds}
    if len(kinds) > 1:
        return False
    if kinds == {bool}:
        return any(
            all((value == each.constant) == (each.comparator == "=") for each in bounds)
            for value in (True, False)
        )
    # The highest lower bound and the lowest upper bound; of equal ones, the strict one.
    lows: list[tuple[Any, bool]] = [("", False)] if kinds == {str} else []
    lows += [(each.constant, each.comparator == ">") for each in bounds if each.comparator in _LOW]
    highs: list[tuple[Any, bool]] = [
        (each.constant, each.comparator != "<") for each in bounds if each.comparator in _HIGH
    ]
    if not lows or not highs:
        return True
    (low, open_), (high, closed) = max(lows), min(highs)
    if low != high:
        return bool(low < high)
    excluded = any(each.comparator == "!=" and each.constant == low for each in bounds)
    return closed and not open_ and not excluded
