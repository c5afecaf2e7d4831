"""The semantics: when an event satisfies a condition.

Plain, complete and slow, over raw values. It shares no code with the encoding, the normal form or
the matchers, which are tested against it. It is the executable form of docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from tamis.errors import ConditionError, SchemaError
from tamis.model.condition import (
    IGNORING_CASE,
    IS_NULL,
    IS_SCALAR,
    OF_KIND,
    SUBSET,
    SUPERSET,
    And,
    Arithmetic,
    AttributeValue,
    Clause,
    Comparison,
    Condition,
    Duration,
    Expression,
    Leaf,
    Literal,
    Not,
    Now,
    Predicate,
    Some,
    ValueConstraint,
    attributes_of,
    parts_of,
)
from tamis.model.domain import Domain
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import list_name
from tamis.model.event import Event
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.open_schema import schema_for
from tamis.model.operator import Signature
from tamis.model.operator_semantics import (
    OperatorTable,
    ask,
    constraint_holds,
    one_substitution_fits,
    refuse_unbound,
)
from tamis.model.schema import Schema
from tamis.model.text_semantics import text_holds
from tamis.model.times.moments import at_moment, mentions_now, read_moment, with_now

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def satisfies(
    condition: Condition,
    event: Mapping[str, Any] | Event,
    schema: Schema,
    operators: OperatorTable | None = None,
    *,
    now: datetime | str | None = None,
) -> bool:
    """Whether the event satisfies a type-checked condition.

    `now` is the moment of the event, which a condition needs that mentions `now`.
    """
    if not isinstance(condition, Condition):
        raise ConditionError(f"expected a condition, got {type(condition).__name__}; see parse")
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    schema = schema_for(schema, condition, _signatures(operators))
    condition = of_moment(condition, schema, None if now is None else read_moment(now))
    checked = event if isinstance(event, Event) else schema.event(event)
    return any(
        clause_holds(clause, checked, schema, operators)
        for clause in open_clauses(condition, True, checked, schema)
    )


def of_moment(condition: Condition, schema: Schema, moment: int | None) -> Condition:
    """The condition with the moment of the event; refuses one that lacks it."""
    condition = with_now(condition, schema)
    if moment is not None:
        return at_moment(condition, moment)
    if mentions_now(condition):
        raise ConditionError("the condition mentions now: give the moment of the event")
    return condition


def _signatures(operators: OperatorTable | None) -> dict[str, Signature]:
    return {name: signature for name, (signature, _) in (operators or {}).items()}


def open_clauses(
    condition: Condition, positive: bool, event: Event, schema: Schema
) -> list[Clause]:
    """The ways to satisfy a condition: the literals of each that are not decided yet.

    `not` is pushed down on the way; it swaps `and` and `or`. Most predicates are true or false of
    the event, whatever else must hold: true gives `[()]`, false gives `[]`. A predicate on several
    values is open if it holds for some of them: others may need another value. Calls are open.
    """
    if isinstance(condition, Not):
        return open_clauses(condition.part, not positive, event, schema)
    if isinstance(condition, Leaf):
        literal = Literal(condition, positive)
        verdicts = set(_verdicts(literal, event, schema))
        if len(verdicts) > 1:
            return [(literal,)]
        return [()] if True in verdicts else []
    parts = (open_clauses(part, positive, event, schema) for part in condition.parts)
    found: list[Clause] = []
    if isinstance(condition, And) != positive:
        for part in parts:
            if () in part:
                return [()]
            found += part
        return found
    found = [()]
    for part in parts:
        found = [(*left, *right) for left in found for right in part]
        if not found:
            break
    return found


def _verdicts(literal: Literal[Any], event: Event, schema: Schema) -> Iterator[bool]:
    """Whether a literal holds, for each value that it may look at."""
    leaf = literal.predicate
    if isinstance(leaf, Some):
        yield element_holds(literal, event, schema)
    elif isinstance(leaf, Comparison):
        for choice in choices(attributes_of(leaf), event):
            yield comparison_holds(literal, choice, schema)
    elif not isinstance(leaf, Predicate):
        yield from (True, False)
    elif looks_at_set(literal):
        yield set_holds(literal, event, schema)
    else:
        for value in event.values.get(leaf.attribute, ()):
            yield value_holds(literal, value, schema)


Choice = Mapping[str, Any]
"""One value for each of some attributes."""


def choices(names: Iterable[str], event: Event) -> Iterator[Choice]:
    """Every choice of one value for each of the attributes; none if one is not bound."""
    chosen = tuple(names)
    for values in product(*(event.values.get(name, ()) for name in chosen)):
        yield dict(zip(chosen, values, strict=True))


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


def clause_holds(
    clause: Clause, event: Event, schema: Schema, operators: OperatorTable | None
) -> bool:
    """The predicates hold together, and one substitution satisfies the calls and constraints."""
    ordinary, calls, constraints, comparisons, elements = parts_of(clause)
    if not conjunction_holds((*ordinary, *comparisons, *elements), event, schema):
        return False
    refuse_unbound((*calls, *constraints))
    answers = [ask(literal.predicate, event, operators) for literal in calls]
    return one_substitution_fits(calls, answers, constraints)


def conjunction_holds(literals: Iterable[Literal[Any]], event: Event, schema: Schema) -> bool:
    """All literals hold: those about sets each by itself, the others for one value."""
    alone: list[Literal] = []
    on_elements: list[Literal[Some]] = []
    together: dict[str, list[Literal]] = {}
    comparisons: list[Literal[Comparison]] = []
    for literal in literals:
        if isinstance(literal.predicate, Comparison):
            comparisons.append(literal)
        elif isinstance(literal.predicate, Some):
            on_elements.append(literal)
        elif looks_at_set(literal):
            alone.append(literal)
        else:
            together.setdefault(literal.predicate.attribute, []).append(literal)

    def fits(name: str, value: Any) -> bool:
        return all(value_holds(literal, value, schema) for literal in together.get(name, ()))

    compared = {name for each in comparisons for name in attributes_of(each.predicate)}
    return (
        all(set_holds(literal, event, schema) for literal in alone)
        and all(element_holds(literal, event, schema) for literal in on_elements)
        and all(
            any(fits(name, value) for value in event.values.get(name, ()))
            for name in together.keys() - compared
        )
        and any(
            all(fits(name, value) for name, value in choice.items())
            and all(comparison_holds(each, choice, schema) for each in comparisons)
            for choice in choices(compared, event)
        )
    )


def element_holds(literal: Literal[Some], event: Event, schema: Schema) -> bool:
    """One element satisfies the condition; or, for the complement, none of at least one does."""
    some, positive = literal
    elements = event.elements.get(list_name(some.attribute, schema), ())
    satisfying = [
        element for element in elements if satisfies(some.condition, element, element.schema)
    ]
    return bool(satisfying) if positive else bool(elements) and not satisfying


def looks_at_set(literal: Literal) -> bool:
    """Whether the literal is about the set of values, not about one of them."""
    predicate, positive = literal
    return predicate.comparator in ("contains", "excludes", SUBSET, SUPERSET, "missing") or (
        (predicate.comparator, positive) in (("exists", False), (IS_NULL, True), (IS_SCALAR, False))
    )


def set_holds(literal: Literal, event: Event, schema: Schema) -> bool:
    """Comparators of the set of values, and their complements."""
    predicate, positive = literal
    bound = event.values.get(predicate.attribute)
    if predicate.comparator == IS_SCALAR:  # its complement: not bound, or to objects only
        scalar = Literal(predicate, True)
        return not any(value_holds(scalar, value, schema) for value in bound or ())
    if predicate.comparator == IS_NULL:
        return (bound is None or all(value is None for value in bound)) == positive
    if predicate.comparator in ("exists", "missing"):
        return (bound is not None) == ((predicate.comparator == "exists") == positive)
    if bound is None:
        return False
    constant = schema.attributes[predicate.attribute].constant
    if predicate.comparator in (SUBSET, SUPERSET):
        assert isinstance(predicate.value, tuple)
        listed = [constant(item) for item in predicate.value]
        inner, outer = (bound, listed) if predicate.comparator == SUBSET else (listed, bound)
        return all(any(_equal(one, other) for other in outer) for one in inner) == positive
    wanted = constant(predicate.value)
    return any(_equal(value, wanted) for value in bound) == (
        (predicate.comparator == "contains") == positive
    )


def value_holds(literal: Literal, value: Any, schema: Schema) -> bool:
    """Whether one value satisfies one literal; the complement is within the domain."""
    predicate, positive = literal
    domain = schema.attributes[predicate.attribute]
    if predicate.comparator == IS_NULL:
        return (value is None) == positive
    if predicate.comparator == IS_SCALAR:
        return not (isinstance(domain, Dynamic) and _kind(value) == "object")
    if isinstance(domain, Dynamic) and predicate.comparator not in ("exists", OF_KIND):
        given = predicate.value if isinstance(predicate.value, tuple) else (predicate.value,)
        if _kind(value) not in {_kind(domain.constant(each)) for each in given}:
            return False  # of another kind, the complement included
    return _true(predicate, value, domain) == positive


def _kind(value: Any) -> str:
    """The kind of a value of a dynamic attribute."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "object"


def _equal(left: Any, right: Any) -> bool:
    """Whether two values are the same; true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _true(predicate: Predicate, value: Any, domain: Domain) -> bool:
    comparator, given = predicate.comparator, predicate.value
    if comparator == "exists":
        return True
    if comparator == OF_KIND:
        assert isinstance(given, tuple)
        return _kind(value) in given
    if comparator == "in":
        assert isinstance(given, tuple)
        return any(_equal(value, domain.constant(item)) for item in given)
    if comparator == "in" + IGNORING_CASE:
        assert isinstance(given, tuple)
        return any(text_holds("=" + IGNORING_CASE, value, str(item)) for item in given)
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
    return text_holds(comparator, value, wanted)


def comparison_holds(literal: Literal[Comparison], choice: Choice, schema: Schema) -> bool:
    """Whether the chosen values of attributes compare as the literal says.

    Values of an enumerated or hierarchical domain compare as in a predicate.
    """
    comparison, positive = literal
    names = attributes_of(comparison)
    domain, right = schema.attributes[names[0]], comparison.right
    if isinstance(domain, Enumerated | Hierarchy):
        assert isinstance(right, AttributeValue)
        predicate = Predicate(names[0], comparison.comparator, choice[right.name])
        return value_holds(Literal(predicate, positive), choice[names[0]], schema)
    left, right = _in_microseconds(comparison.left), _in_microseconds(right)
    constraint = ValueConstraint(left, comparison.comparator, right)
    return constraint_holds(
        Literal(constraint, positive), {name: _microseconds(choice[name]) for name in names}
    )


def _in_microseconds(expression: Expression) -> Expression:
    """Durations and the moment as numbers: sums of whole numbers are exact, however large."""
    if isinstance(expression, Arithmetic):
        left, right = _in_microseconds(expression.left), _in_microseconds(expression.right)
        return Arithmetic(expression.sign, left, right)
    if isinstance(expression, Duration):
        return expression.microseconds
    if isinstance(expression, Now):
        assert expression.moment is not None
        return expression.moment
    return expression


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
