"""Random conditions and events over every domain, with many edge cases.

The choices come from a `Chooser`: a seeded random source for volume, or hypothesis, which can
shrink.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from tamis.errors import SchemaError
from tamis.model.condition import (
    COMPLEMENTS,
    IGNORING_CASE,
    LISTS,
    OF_EVERY_DOMAIN,
    OF_KIND,
    ORDER,
    REGULAR,
    SIGNS,
    STATES,
    TEXT,
    WITHIN,
    And,
    Arithmetic,
    AttributeValue,
    Comparison,
    Condition,
    Duration,
    Expression,
    Not,
    Now,
    Or,
    Predicate,
    Some,
)
from tamis.model.domain import Domain, RefusalError
from tamis.model.dynamic import KINDS, Dynamic, kind_of_value
from tamis.model.elements.structs import ELEMENT, Structs
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.open_event import LIST
from tamis.model.open_schema import schema_for
from tamis.model.schema import EVENT_TYPE, Schema

T = TypeVar("T")
_LEAST = math.ulp(0.0)
_MOST = 1.7976931348623157e308

_BOTH = ["price", "number", "small", "title", "at", "rank", "colour", "category", "craft", "any"]
_SINGLE = [*_BOTH, "open", "period", "picture", "other", "items"]
_SEVERAL = [*_BOTH, "tags", "items"]

SCHEMA = Schema.from_dict(
    {
        "domains": {
            "century": {
                "kind": "enumerated",
                "values": ["XVI", "XVII", "XVIII", "XIX"],
                "order": [["XVI", "XVII"], ["XVII", "XVIII"], ["XVIII", "XIX"]],
            },
            "rank": {  # a diamond: left and right are incomparable
                "kind": "enumerated",
                "values": ["top", "left", "right", "bottom", "apart"],
                "order": [
                    ["bottom", "left"],
                    ["bottom", "right"],
                    ["left", "top"],
                    ["right", "top"],
                ],
            },
            "colour": {"kind": "enumerated", "values": ["red", "green", "dark blue"]},
            "furniture": {
                "kind": "hierarchy",
                "tree": {
                    "furniture": {
                        "table": {"dining_table": {"oval": {}}, "desk": {}},
                        "chair": {"stool": {}},
                    },
                    "toy": {"car": {}},
                },
            },
            "craft": {  # a DAG: a bureau is a desk and a cabinet
                "kind": "hierarchy",
                "parents": {
                    "desk": ["wood"],
                    "cabinet": ["wood", "storage"],
                    "bureau": ["desk", "cabinet"],
                    "chest": ["storage"],
                },
            },
        },
        "attributes": {
            "price": "decimal",
            "number": "integer",
            "small": {"kind": "integer", "low": 0, "high": 4},
            "title": "text",
            "tags": "text",
            "open": "boolean",
            "at": "timestamp",
            "period": "century",
            "rank": "rank",
            "colour": "colour",
            "category": "furniture",
            "craft": "craft",
            "picture": "opaque",
            "any": "dynamic",
            "other": "dynamic",
            "items": {
                "kind": "structs",
                "attributes": {
                    "sku": "text",
                    "size": {"kind": "integer", "low": 0, "high": 4},
                    "price": "decimal",
                    "best": "decimal",
                    "colour": "colour",
                    "marks": "text",
                    "parts": {"kind": "structs", "attributes": {"size": "integer", "sku": "text"}},
                },
                "multiple": ["marks"],
            },
        },
        "event_types": {
            "single": dict.fromkeys(_SINGLE, "optional"),
            "several": dict.fromkeys(_SEVERAL, "optional multiple"),
            "strict": {"price": "mandatory", "number": "mandatory"},
        },
    }
)
"""All domains; unique, multiple and mandatory uses."""

VALUES: dict[str, tuple[Any, ...]] = {
    "decimal": (
        -_MOST,
        -2.5,
        -1,
        -_LEAST,
        -0.0,
        0,
        _LEAST,
        1,
        1.5,
        math.nextafter(1.5, 2),
        7,
        _MOST,
    ),
    "integer": (-(2**63), 1 - 2**63, -3, -1, 0, 1, 2, 3, 2.0, 2**53 + 1, 2**63 - 2, 2**63 - 1),
    "text": (
        *("", "a", "a\0", "ab", "abc", "abd", "b", "ba", "é", "\ud7ff", "\ue000", "\U0010ffff"),
        *("A", "aB", "\u00df", "sS", "10.1.2.3", "2001:DB8:0::1"),
    ),
    "boolean": (True, False),
    "timestamp": (
        "0001-01-01",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "2026-03-01T12:00:00+02:00",
        "2026-03-01T10:00:00.000001Z",
        "9999-12-31T23:59:59.999999Z",
    ),
    "opaque": (b"\x00", {"deep": [1, None]}, "text", 0),
    "dynamic": (
        *(None, True, False, "", "a", "ab", "A", "2", "10.1.2.3", "\U0010ffff", {"deep": 1}),
        *(-(2**63), -_MOST, -1.5, -0.0, 0, _LEAST, 1, 1.0, 1.5, 2**53, 2.0**53, 2**53 + 1),
        *(2**63 - 1025, 2**63 - 1024, 2**63 - 1, _MOST),
    ),
}
"""Values for events, by kind: extremes and neighbours, few enough to match often."""

CONSTANTS: dict[str, tuple[Any, ...]] = {
    **VALUES,
    "integer": (*VALUES["integer"], 1.5, -0.5, 1e30, -1e30),
    "text": (*VALUES["text"], "\U0010ffff\U0010ffff", "aa", "a%"),
    "dynamic": tuple(v for v in VALUES["dynamic"] if v is not None and not isinstance(v, dict)),
}
PATTERNS = ("a%", "%b", "_", "%", "", "a_c", "%a%", "a%b%", "\\%", "%\\_", "ab", "_%_")
PATTERNED: dict[str, tuple[str, ...]] = {
    "like": PATTERNS,
    "like" + IGNORING_CASE: (*PATTERNS, "A%", "%S"),
    REGULAR: ("a", "^a", "b$", "^$", "^[ab]+c?$", "(?i)A", "^.$", r"^\d+\."),
    WITHIN: ("10.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "::/0"),
    OF_KIND: KINDS,
}
"""Constants of comparators that do not take values of the domain."""


class Chooser(Protocol):
    """A source of choices."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""

    def number(self, low: int, high: int) -> int:
        """A whole number, both ends included."""


class RandomChooser:
    """Choices from a seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def _pool(domain: Domain, pools: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(getattr(domain, "values", ())) or pools.get(domain.kind, ())


def _in_domain(domain: Domain, value: Any) -> bool:
    try:
        domain.value(value)
    except RefusalError:
        return False
    return True


def predicate(chooser: Chooser, schema: Schema = SCHEMA) -> Predicate:
    """A predicate that type-checks. It may be one that never holds."""
    names = [name for name in schema.attributes if not (schema.is_open and name in schema.lists)]
    if ELEMENT in schema.event_types:
        names.remove(EVENT_TYPE)  # elements have none
    name = chooser.pick(names)
    domain = schema.attributes[name]
    comparator = chooser.pick((*domain.comparators, *OF_EVERY_DOMAIN))
    if comparator in STATES:
        return Predicate(name, comparator)
    pool = _pool(domain, CONSTANTS)
    if isinstance(domain, Dynamic):
        pool = _of_one_kind(chooser, comparator, pool)
    pool = PATTERNED.get(comparator, pool)
    if comparator in LISTS:
        return Predicate(
            name, comparator, tuple(chooser.pick(pool) for _ in range(chooser.number(1, 3)))
        )
    if comparator == "between":
        return Predicate(name, comparator, (chooser.pick(pool), chooser.pick(pool)))
    return Predicate(name, comparator, chooser.pick(pool))


def _of_one_kind(chooser: Chooser, comparator: str, pool: tuple[Any, ...]) -> tuple[Any, ...]:
    """Constants that a comparator of dynamic attributes takes together."""
    if comparator in TEXT:
        return tuple(each for each in pool if isinstance(each, str))
    if comparator not in ORDER:
        return pool
    kind = kind_of_value(chooser.pick([each for each in pool if not isinstance(each, bool)]))
    return tuple(each for each in pool if kind_of_value(each) == kind)


_DEPTH = 3


def tangle(chooser: Chooser, schema: Schema = SCHEMA) -> Condition:
    """An `and` of so many `or`s, perhaps negated, that it is not multiplied out."""
    count = chooser.number(5, 8)
    ors = [
        tuple(condition(chooser, 1, schema) for _ in range(chooser.number(2, 4)))
        for _ in range(count)
    ]
    if chooser.number(0, 2) == 0:
        return Not(Or(tuple(And(parts) for parts in ors)))
    # Negated parts hold more often, so that some events match.
    return And(tuple(Or((*parts, Not(parts[0]))) for parts in ors))


def condition(chooser: Chooser, depth: int = _DEPTH, schema: Schema = SCHEMA) -> Condition:
    """A condition of a few predicates in any boolean structure, or a tangle of many."""
    if depth == _DEPTH and chooser.number(0, 9) == 0:
        return tangle(chooser, schema)
    shape = chooser.pick(("predicate", "predicate", "and", "and", "or", "not")) if depth else ""
    if shape == "not":
        return Not(condition(chooser, depth - 1, schema))
    if shape in ("and", "or"):
        parts = tuple(condition(chooser, depth - 1, schema) for _ in range(chooser.number(2, 3)))
        return And(parts) if shape == "and" else Or(parts)
    if schema.lists and chooser.number(0, 7) == 0:
        return some(chooser, depth, schema)
    if chooser.number(0, 15) == 0 and any(map(schema.attributes.__contains__, _COMPARED)):
        return comparison(chooser, schema)
    return predicate(chooser, schema)


def some(chooser: Chooser, depth: int, schema: Schema = SCHEMA) -> Some:
    """A condition on the elements of a list of structs."""
    name = chooser.pick(sorted(schema.lists))
    domain = schema.attributes[name]
    assert isinstance(domain, Structs)
    inner = condition(chooser, chooser.pick((1, 1, 2, 2, min(depth + 1, _DEPTH))), domain.element)
    return Some("each", name.removesuffix(LIST) if schema.is_open else name, inner)


_ALIKE = (
    ("price", "number", "small", "best", "size"),
    ("title", "tags"),
    ("at",),
    ("rank",),
    ("craft",),
    ("open",),
    ("any", "other", "number"),
    ("a", "a.b", "tags", "x.y", "b", "c"),
)
_COMPARED = {name for alike in _ALIKE for name in alike}


def comparison(chooser: Chooser, schema: Schema = SCHEMA) -> Comparison:
    """A comparison of attributes of `SCHEMA`, or of its elements, that type-checks."""
    known = [tuple(name for name in alike if name in schema.attributes) for alike in _ALIKE]
    names = chooser.pick([alike for alike in known if alike])
    left, right = AttributeValue(chooser.pick(names)), AttributeValue(chooser.pick(names))
    comparator = chooser.pick(tuple(COMPLEMENTS)) if names != ("open",) else "="
    if "price" not in names:
        return Comparison(left, comparator, right)
    sign, constant = chooser.pick(SIGNS), chooser.pick((0, 1, -1.5, 2))
    return Comparison(left, comparator, Arithmetic(sign, right, constant))


_AT, _NOW = AttributeValue("at"), Now()
_DURATIONS = (0, 1, -1, 60_000_000, 1 - 2**63, 2**63 - 1, 2**55)


def timed(chooser: Chooser, other: Condition) -> Condition:
    """A condition of `SCHEMA` with a comparison of times, beside another one."""
    length = Duration(chooser.pick(_DURATIONS))
    sides: tuple[tuple[Expression, Expression], ...] = (
        (_AT, Arithmetic("-", _NOW, length)),
        (Arithmetic("-", _AT, _NOW), length),
        (Arithmetic("-", _NOW, _AT), Arithmetic("+", length, Arithmetic("-", _AT, _NOW))),
        (Arithmetic("+", _AT, length), _AT),
    )
    left, right = chooser.pick(sides)
    made = Comparison(left, chooser.pick(tuple(COMPLEMENTS)), right)
    whole: tuple[Condition, ...] = (made, Not(made), And((made, other)), Or((made, other)))
    return chooser.pick(whole)


def event(chooser: Chooser, schema: Schema = SCHEMA) -> dict[str, Any]:
    """A consistent event: some types, some of their attributes, one or several values."""
    kinds = list(schema.event_types)
    types = [name for name in kinds if chooser.number(0, 1)] or [chooser.pick(kinds)]
    bound: dict[str, Any] = {EVENT_TYPE: types if len(types) > 1 else types[0]}
    for name, use in schema.view(types).items():
        domain = schema.attributes[name]
        if isinstance(domain, Structs):
            if chooser.number(0, 2):
                bound[name] = elements(chooser, domain)
            continue
        pool = [value for value in _pool(domain, VALUES) if _in_domain(domain, value)]
        if not use.mandatory and chooser.number(0, 2) == 0:
            if chooser.number(0, 3) == 0:
                bound[name] = None  # null is absent, or a dynamic value
            continue
        if use.multiple and chooser.number(0, 1):
            bound[name] = [chooser.pick(pool) for _ in range(chooser.number(1, 3))]
        else:
            bound[name] = chooser.pick(pool)
    return bound


def elements(chooser: Chooser, domain: Structs) -> Any:
    """Some elements of a list of structs, perhaps none, or a single one without its list."""
    found = [event(chooser, domain.element) for _ in range(chooser.number(0, 3))]
    for element in found:
        del element[EVENT_TYPE]
    return found[0] if len(found) == 1 and chooser.number(0, 1) else found


def grown(chooser: Chooser, schema: Schema = SCHEMA) -> Schema:
    """The schema with a new value in one of its domains, somewhere among the others."""
    names = [
        name for name, each in schema.domains.items() if isinstance(each, Enumerated | Hierarchy)
    ]
    name = chooser.pick(names)
    domain = schema.domains[name]
    assert isinstance(domain, Enumerated | Hierarchy)
    new = f"{name} {len(domain.values)}"
    for _ in range(chooser.number(0, 3)):
        lower, higher = (
            {chooser.pick(domain.values) for _ in range(chooser.number(0, 2))} for _ in range(2)
        )
        try:
            if isinstance(domain, Hierarchy):
                return schema.grow_domain(name, {new: higher, **dict.fromkeys(lower, (new,))})
            if domain.order is not None:
                pairs = [*((low, new) for low in lower), *((new, high) for high in higher)]
                return schema.grow_domain(name, [new], pairs)
        except SchemaError:  # it would change how old values compare
            continue
    return schema.grow_domain(name, [new])


_MENTIONED = ("b", "c", "c.y", "event_type")
OPEN = schema_for(
    Schema.open().mentioning(["a", "a.b", "a.b.c", "tags", "x.y", "event_type"]),
    Some("each", "a", And(tuple(Predicate(name, "exists") for name in _MENTIONED))),
)
"""An open schema, with the attributes that conditions mention, and a list of structs."""


def open_event(chooser: Chooser) -> dict[str, Any]:
    """Any JSON object: values, lists and objects where conditions look and where they do not."""

    def value(depth: int) -> Any:
        shape = chooser.number(0, 5 if depth else 3)
        if shape == 4:
            return [value(depth - 1) for _ in range(chooser.number(0, 3))]
        if shape == 5:
            return {key: value(depth - 1) for key in ("b", "c", "y", "z") if chooser.number(0, 1)}
        return chooser.pick(VALUES["dynamic"])

    names = ("a", "a.b", "b.c", "tags", "x", "x.y", "other", EVENT_TYPE)
    return {name: value(3) for name in names if chooser.number(0, 1)}
