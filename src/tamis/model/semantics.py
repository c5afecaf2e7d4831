"""The semantics: when an event satisfies a condition.

Plain, complete and slow, over raw values. It shares no code with the encoding, the normal form or
the matchers, which are tested against it. It is the executable form of docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from math import isfinite
from typing import Any, NamedTuple

from tamis.errors import ConditionError, SchemaError
from tamis.model.condition import (
    COMPLEMENTS,
    And,
    Arithmetic,
    AttributeValue,
    Call,
    Clause,
    Comparison,
    Condition,
    Constant,
    Expression,
    Leaf,
    Literal,
    Not,
    Predicate,
    ValueConstraint,
    Variable,
    attributes_of,
    leaves,
    parts_of,
    variables,
)
from tamis.model.domain import Domain
from tamis.model.event import Event
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.operator import Fault, Rows, Signature
from tamis.model.schema import Schema

Function = Callable[[tuple[Any, ...], tuple[Constant | None, ...]], Rows | Fault]
"""An operator: takes one value for each attribute it reads, and one entry for each parameter, None
for a variable; returns rows or a fault."""
OperatorTable = Mapping[str, tuple[Signature, Function]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Substitution = Mapping[str, Any]
"""Values of variables, by name."""


def satisfies(
    condition: Condition,
    event: Mapping[str, Any] | Event,
    schema: Schema,
    operators: OperatorTable | None = None,
) -> bool:
    """Whether the event satisfies a type-checked condition."""
    if not isinstance(condition, Condition):
        raise ConditionError(f"expected a condition, got {type(condition).__name__}; see parse")
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    checked = event if isinstance(event, Event) else schema.event(event)
    return any(
        operators_hold(clause, checked, operators)
        for choice in choices(condition, checked)
        for clause in left_to_operators(condition, True, choice, checked, schema)
    )


Choice = Mapping[str, Any]
"""One value for each attribute that the event binds."""


def choices(condition: Condition, event: Event) -> Iterator[Choice]:
    """Every choice of one value for each attribute of the condition that the event binds.

    All predicates about *one value* of an attribute must hold for the same value.
    """
    mentioned = {
        name
        for leaf in leaves(condition)
        if isinstance(leaf, Predicate | Comparison)
        for name in attributes_of(leaf)
    }
    bound = [name for name in event.values if name in mentioned]
    for values in product(*(event.values[name] for name in bound)):
        yield dict(zip(bound, values, strict=True))


def left_to_operators(
    condition: Condition, positive: bool, choice: Choice, event: Event, schema: Schema
) -> list[Clause]:
    """The ways to satisfy the condition under a choice: the calls and constraints of each.

    `not` is pushed down on the way; it swaps `and` and `or`. Without calls this is `[()]`, for
    true, or `[]`, for false.
    """
    if isinstance(condition, Not):
        return left_to_operators(condition.part, not positive, choice, event, schema)
    if isinstance(condition, Predicate):
        literal = Literal(condition, positive)
        if looks_at_set(literal):
            holds = set_holds(literal, event, schema)
        else:
            name = condition.attribute
            holds = name in choice and value_holds(literal, choice[name], schema)
        return [()] if holds else []
    if isinstance(condition, Comparison):
        return [()] if comparison_holds(Literal(condition, positive), choice, schema) else []
    if isinstance(condition, Leaf):
        return [(Literal(condition, positive),)]
    parts = (left_to_operators(part, positive, choice, event, schema) for part in condition.parts)
    found: list[Clause] = []
    if isinstance(condition, And) != positive:
        for part in parts:
            if () in part:
                return [()]  # nothing is left to operators
            found += part
        return found
    found = [()]
    for part in parts:
        found = [(*left, *right) for left in found for right in part]
        if not found:
            break
    return found


def branches(condition: Condition, positive: bool = True) -> Iterator[Clause]:
    """The ways to satisfy a condition: one conjunction for each choice within every `or`.

    `not` is pushed down on the way; it swaps `and` and `or`.
    """
    if isinstance(condition, Leaf):
        yield (Literal(condition, positive),)
    elif isinstance(condition, Not):
        yield from branches(condition.part, not positive)
    elif isinstance(condition, And) == positive:
        for choice in product(*(tuple(branches(part, positive)) for part in condition.parts)):
            yield tuple(literal for literals in choice for literal in literals)
    else:
        for part in condition.parts:
            yield from branches(part, positive)


def operators_hold(clause: Clause, event: Event, operators: OperatorTable | None) -> bool:
    """Whether one substitution satisfies the calls and constraints of a clause."""
    _, calls, constraints, _ = parts_of(clause)
    refuse_unbound(clause)
    answers = [ask(literal.predicate, event, operators) for literal in calls]
    return one_substitution_fits(calls, answers, constraints)


def conjunction_holds(literals: Iterable[Literal], event: Event, schema: Schema) -> bool:
    """All predicates hold: those about sets each by itself, the others for one value."""
    alone: list[Literal] = []
    together: dict[str, list[Literal]] = {}
    for literal in literals:
        if looks_at_set(literal):
            alone.append(literal)
        else:
            together.setdefault(literal.predicate.attribute, []).append(literal)
    return all(set_holds(literal, event, schema) for literal in alone) and all(
        any(
            all(value_holds(literal, value, schema) for literal in group)
            for value in event.values.get(attribute, ())
        )
        for attribute, group in together.items()
    )


def looks_at_set(literal: Literal) -> bool:
    """Whether the literal is about the set of values, not about one of them."""
    predicate, positive = literal
    return predicate.comparator in ("contains", "excludes", "missing") or (
        predicate.comparator == "exists" and not positive
    )


def set_holds(literal: Literal, event: Event, schema: Schema) -> bool:
    """`contains`, `excludes`, `exists` and `missing`, and their complements."""
    predicate, positive = literal
    bound = event.values.get(predicate.attribute)
    if predicate.comparator in ("exists", "missing"):
        return (bound is not None) == ((predicate.comparator == "exists") == positive)
    if bound is None:
        return False
    wanted = schema.attributes[predicate.attribute].constant(predicate.value)
    return (wanted in bound) == ((predicate.comparator == "contains") == positive)


def value_holds(literal: Literal, value: Any, schema: Schema) -> bool:
    """Whether one value satisfies one literal; the complement is within the domain."""
    predicate, positive = literal
    return _true(predicate, value, schema.attributes[predicate.attribute]) == positive


def _true(predicate: Predicate, value: Any, domain: Domain) -> bool:
    comparator, given = predicate.comparator, predicate.value
    if comparator == "exists":
        return True
    if comparator == "in":
        assert isinstance(given, tuple)
        return any(value == domain.constant(item) for item in given)
    if comparator == "between":
        assert isinstance(given, tuple)
        low, high = (domain.constant(end) for end in given)
        return _at_most(low, value, domain) and _at_most(value, high, domain)
    wanted = domain.constant(given)
    if comparator == "=":
        return bool(value == wanted)
    if comparator == "!=":
        return bool(value != wanted)
    if comparator == "<=":
        return _at_most(value, wanted, domain)
    if comparator == "<":
        return value != wanted and _at_most(value, wanted, domain)
    if comparator == ">=":
        return _at_most(wanted, value, domain)
    if comparator == ">":
        return value != wanted and _at_most(wanted, value, domain)
    if comparator == "starts with":
        return bool(value[: len(wanted)] == wanted)
    if comparator == "ends with":
        return bool(value[len(value) - len(wanted) :] == wanted) and len(value) >= len(wanted)
    if comparator == "like":
        return _like(value, wanted)
    raise AssertionError(f"no such comparator: {comparator}")


def comparison_holds(literal: Literal[Comparison], choice: Choice, schema: Schema) -> bool:
    """Whether the chosen values of attributes compare as the literal says.

    Values of an enumerated or hierarchical domain compare as in a predicate.
    """
    comparison, positive = literal
    names = attributes_of(comparison)
    if not all(name in choice for name in names):
        return False
    domain, right = schema.attributes[names[0]], comparison.right
    if isinstance(domain, Enumerated | Hierarchy):
        assert isinstance(right, AttributeValue)
        predicate = Predicate(names[0], comparison.comparator, choice[right.name])
        return value_holds(Literal(predicate, positive), choice[names[0]], schema)
    constraint = ValueConstraint(comparison.left, comparison.comparator, right)
    return constraint_holds(
        Literal(constraint, positive), {name: _microseconds(choice[name]) for name in names}
    )


def _microseconds(value: Any) -> Any:
    """A timestamp as a number, which compares in the same way; other values as they are."""
    return (value - _EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def _at_most(left: Any, right: Any, domain: Domain) -> bool:
    """left <= right: in a hierarchy "left is a kind of right", else the domain's order."""
    if isinstance(domain, Hierarchy):
        return _reaches(left, right, domain.parents)
    if isinstance(domain, Enumerated):
        higher: dict[str, list[str]] = {}
        for low, high in domain.order or ():
            higher.setdefault(low, []).append(high)
        return _reaches(left, right, higher)
    return bool(left <= right)


def _reaches(start: str, goal: str, onward: Mapping[str, Iterable[str]]) -> bool:
    """Whether goal is reachable from start. Visits each name once: a DAG has many paths."""
    seen, stack = {start}, [start]
    while stack:
        name = stack.pop()
        if name == goal:
            return True
        fresh = [after for after in onward.get(name, ()) if after not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False


def _like(value: str, pattern: str) -> bool:
    """`%` matches any text, `_` one code point; a backslash escapes the next character.

    Tracks the set of pattern positions that are reachable after each code point of the value.
    """
    parts: list[tuple[str, bool]] = []  # (character, literal?)
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append((next(characters, "\\"), True))
        else:
            parts.append((character, character not in "%_"))

    def widen(positions: set[int]) -> set[int]:
        for position in range(len(parts)):  # a `%` may match nothing
            if position in positions and parts[position] == ("%", False):
                positions.add(position + 1)
        return positions

    reached = widen({0})
    for character in value:
        after: set[int] = set()
        for position in reached:
            if position == len(parts):
                continue
            wanted, literal = parts[position]
            if not literal and wanted == "%":
                after.add(position)
            elif wanted == character or not literal:
                after.add(position + 1)
        reached = widen(after)
    return len(parts) in reached


# -- operators -------------------------------------------------------------------------------------


class CallAnswer(NamedTuple):
    """The answer of an operator to a call."""

    call: Call
    signature: Signature
    rows: Rows | Fault | None  # None if the event lacks an attribute that the operator reads


Fitting = Callable[[CallAnswer, Substitution], Iterator[Substitution]]


def ask(call: Call, event: Event, operators: OperatorTable | None) -> CallAnswer:
    """The rows of the operator for the event, for each value of its attributes."""
    if operators is None or call.operator not in operators:
        raise ConditionError(f"unknown operator {call.operator!r}", span=call.span)
    signature, function = operators[call.operator]
    constants = tuple(None if isinstance(each, Variable) else each for each in call.arguments)
    if not all(attribute in event.values for attribute in signature.reads):
        return CallAnswer(call, signature, None)
    rows: list[tuple[Any, ...]] = []
    for values in product(*(event.values[attribute] for attribute in signature.reads)):
        given = function(values, constants)
        if isinstance(given, Fault):
            return CallAnswer(call, signature, given)
        rows.extend(given)
    return CallAnswer(call, signature, tuple(rows))


def fitting(answer: CallAnswer, known: Substitution) -> Iterator[Substitution]:
    """For each row that agrees with the call and the substitution: the wider substitution."""
    for row in answer.rows if isinstance(answer.rows, tuple) else ():
        wider = dict(known)
        for position, value in zip(answer.signature.free, row, strict=True):
            given = answer.call.arguments[position]
            if isinstance(given, Variable):
                given = wider.setdefault(given.name, value)
            if not _same(given, value):
                break
        else:
            yield wider


def one_substitution_fits(
    calls: Sequence[Literal[Call]],
    answers: Sequence[CallAnswer],
    constraints: Sequence[Literal[ValueConstraint]],
    fitting: Fitting = fitting,
) -> bool:
    """Some substitution makes positive calls true, negated calls false, and constraints true.

    A call without an answer, by a fault or a missing attribute, is neither true nor false.
    `fitting` may raise, to bound the search.
    """
    if any(not isinstance(answer.rows, tuple) for answer in answers):
        return False
    both = list(zip(calls, answers, strict=True))
    wanted = [answer for literal, answer in both if literal.positive]
    unwanted = [answer for literal, answer in both if not literal.positive]
    return any(
        not any(is_true(answer, known, fitting) for answer in unwanted)
        and all(constraint_holds(literal, known) for literal in constraints)
        for known in substitutions(wanted, fitting=fitting)
    )


def substitutions(
    answers: Sequence[CallAnswer], known: Substitution | None = None, fitting: Fitting = fitting
) -> Iterator[Substitution]:
    """Every substitution that matches a row of each answer: nested loops, one for each call."""
    known = known or {}
    if not answers:
        yield known
        return
    for wider in fitting(answers[0], known):
        yield from substitutions(answers[1:], wider, fitting)


def is_true(answer: CallAnswer, known: Substitution, fitting: Fitting = fitting) -> bool:
    """Whether the call is true under a substitution: some row matches it."""
    return any(True for _ in fitting(answer, known))


def constraint_holds(literal: Literal[ValueConstraint], known: Substitution) -> bool:
    """Whether a value constraint or its complement holds; never between different kinds."""
    constraint, positive = literal
    comparator = constraint.comparator if positive else COMPLEMENTS[constraint.comparator]
    left, right = _result(constraint.left, known), _result(constraint.right, known)
    kind = _kind(left)
    if kind is None or kind != _kind(right):
        return False
    if comparator in ("=", "!="):
        return bool(left == right) == (comparator == "=")
    if kind == "boolean":
        return False  # booleans have no order
    if comparator in ("<", ">="):
        return bool(left < right) == (comparator == "<")
    return bool(left > right) == (comparator == ">")


def _result(expression: Expression, known: Substitution) -> Any:
    """The value of an expression; None if it has none, as for a division by zero."""
    if isinstance(expression, Variable | AttributeValue):
        return known[expression.name]
    if not isinstance(expression, Arithmetic):
        return expression
    left, right = _result(expression.left, known), _result(expression.right, known)
    if _kind(left) != "number" or _kind(right) != "number":
        return None
    try:
        if expression.sign == "+":
            return left + right
        if expression.sign == "-":
            return left - right
        if expression.sign == "*":
            return left * right
        return left / right
    except (ZeroDivisionError, OverflowError):
        return None


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return "number"
    return "text" if isinstance(value, str) else None


def _same(left: Any, right: Any) -> bool:
    """1 equals 1.0, but true is not a number."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def refuse_unbound(literals: Sequence[Literal[Call | ValueConstraint]]) -> None:
    """Refuse a variable that no positive call binds; the type check does so earlier."""
    bound = {
        variable.name
        for leaf, positive in literals
        if positive and isinstance(leaf, Call)
        for variable in variables(leaf)
    }
    for leaf, _ in literals:
        for variable in variables(leaf):
            if variable.name not in bound:
                raise ConditionError(f"nothing binds ?{variable.name}", span=leaf.span)
