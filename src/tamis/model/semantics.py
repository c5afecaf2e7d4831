"""The definition of truth: when an event satisfies a condition.

Plain, complete and slow, over raw values: it shares nothing with the codes, the normal form or the
matchers that are tested against it. Read it as the executable form of docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from tamis.errors import ConditionError, SchemaError
from tamis.model.condition import And, Condition, Literal, Not, Predicate
from tamis.model.domain import Domain
from tamis.model.event import Event
from tamis.model.named import Enumerated, Hierarchy
from tamis.model.schema import Schema


def satisfies(condition: Condition, event: Mapping[str, Any] | Event, schema: Schema) -> bool:
    """Whether the event satisfies the condition, which must have passed the type check."""
    if not isinstance(condition, Condition):
        raise ConditionError(f"expected a condition, got {type(condition).__name__}; see parse")
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    checked = event if isinstance(event, Event) else schema.event(event)
    return any(conjunction_holds(branch, checked, schema) for branch in branches(condition))


def branches(condition: Condition, positive: bool = True) -> Iterator[tuple[Literal, ...]]:
    """The ways to satisfy a condition: one conjunction for each choice within every `or`.

    `not` is pushed down on the way: under it `and` and `or` change places.
    """
    if isinstance(condition, Predicate):
        yield (Literal(condition, positive),)
    elif isinstance(condition, Not):
        yield from branches(condition.part, not positive)
    elif isinstance(condition, And) == positive:
        for choice in product(*(tuple(branches(part, positive)) for part in condition.parts)):
            yield tuple(literal for literals in choice for literal in literals)
    else:
        for part in condition.parts:
            yield from branches(part, positive)


def conjunction_holds(literals: Iterable[Literal], event: Event, schema: Schema) -> bool:
    """All literals hold: those on whole sets each by itself, the others by one value."""
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
    """Whether the literal is about the set of values rather than about one of them."""
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
    """Whether steps lead from start to goal. Each name once: a DAG may have many ways."""
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
    """`%` stands for any text, `_` for one code point, a backslash takes the next literally.

    Keeps the set of pattern positions that are reachable after each code point of the value.
    """
    parts: list[tuple[str, bool]] = []  # (character, literal?)
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append((next(characters, "\\"), True))
        else:
            parts.append((character, character not in "%_"))

    def widen(positions: set[int]) -> set[int]:
        for position in range(len(parts)):  # a `%` may stand for nothing
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
