"""A small world in which everything collides: one schema, few values, every comparator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tamis.errors import NeverTrueError
from tamis.model import semantics
from tamis.model.condition import IGNORING_CASE, LISTS, REGULAR, WITHIN, And, Condition, Predicate
from tamis.model.schema import Schema
from tests.unit.language.conditions import grow

SCHEMA = Schema.from_dict(
    {
        "domains": {
            "size": {
                "kind": "enumerated",
                "values": ["L", "M", "S", "odd"],
                "order": [["S", "M"], ["M", "L"], ["S", "odd"]],
            },
            "thing": {
                "kind": "hierarchy",
                "tree": {"furniture": {"table": {"desk": {}, "bar": {}}, "chair": {}}, "pet": {}},
                "parents": {"desk": ["office"], "bar": ["office", "pet"]},
            },
        },
        "attributes": {
            "n": "integer",
            "q": {"kind": "integer", "low": 0, "high": 3},
            "d": "decimal",
            "s": "text",
            "b": "boolean",
            "at": "timestamp",
            "c": {"kind": "enumerated", "values": ["red", "green", "blue"]},
            "size": "size",
            "thing": "thing",
            "o": "opaque",
            "ns": "integer",
            "ws": "text",
            "things": "thing",
        },
        "event_types": {
            "one": {
                **dict.fromkeys(("n", "q", "d", "s", "b", "at", "c", "size", "thing"), "optional"),
                "o": "optional",
            },
            "many": {**dict.fromkeys(("ns", "ws", "things"), "optional multiple"), "n": "optional"},
        },
    }
)
TEXTS = (
    "",
    "\0",
    "a",
    "a\0",
    "ab",
    "aba",
    "b",
    "ba",
    "\ud7ff",
    "\ue000",
    "\U0010ffff",
    "b\U0010ffff",
)
WHOLES = (-(2**63), -2, -1, 0, 1, 2, 3, 2**53 + 1, 2**63 - 1)
REALS = (-1.7976931348623157e308, -1.5, -0.0, 5e-324, 0.1, 1.0, 2.5, 1.7976931348623157e308)
MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
POOL: dict[str, tuple[Any, ...]] = {
    "n": WHOLES,
    "ns": WHOLES[2:6],
    "q": (0, 1, 2, 3),
    "d": REALS,
    "s": TEXTS,
    "ws": TEXTS[:8],
    "b": (True, False),
    "at": tuple(moment.isoformat() for moment in MOMENTS),
    "c": ("red", "green", "blue"),
    "size": ("L", "M", "S", "odd"),
    "thing": ("furniture", "table", "desk", "bar", "chair", "pet", "office"),
    "things": ("furniture", "table", "desk", "bar", "chair", "pet", "office"),
    "event_type": ("one", "many"),
}
PATTERNS = ("", "%", "_", "a%", "%a", "%a%", "_b%", "a_a", "b\\%", "%b%a", "a")
PATTERNED = {
    **dict.fromkeys(("like", "like" + IGNORING_CASE), PATTERNS),
    REGULAR: ("", "a", "^b", "(?i)^A.?$"),
    WITHIN: ("0.0.0.0/0", "::1"),
}
CONSTANTS: dict[str, tuple[Any, ...]] = {
    **POOL,
    "n": (*WHOLES, 1.5, -0.5, 1e300),
    "q": (-1, 0, 1, 2, 3, 4, 1.5),
}


_KINDS = {"ns": pa.int64(), "n": pa.int64(), "q": pa.int64(), "d": pa.float64(), "b": pa.bool_()}
COLUMNS = pa.schema(
    [
        (name, pa.list_(kind) if name in ("event_type", "ns", "ws", "things") else kind)
        for name in SCHEMA.attributes
        if name != "o"
        for kind in [_KINDS.get(name, pa.string())]
    ]
)
"""Columns of all attributes but the opaque one."""


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Events of the world, over either event type or both."""

    def values(name: str) -> st.SearchStrategy[Any]:
        if name == "o":
            return st.sampled_from([b"x", {"k": [1]}, 5, "t"])
        one = st.sampled_from(POOL[name])
        many = SCHEMA.event_types["many"]
        if name in many and many[name].multiple:
            return st.lists(one, max_size=3)
        return one

    def of(types: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        names = {name for kind in types for name in SCHEMA.event_types[kind]}
        given = {name: values(name) for name in sorted(names)}
        return st.fixed_dictionaries({"event_type": st.just(types)}, optional=given)

    return st.sampled_from([["one"], ["many"], ["one", "many"]]).flatmap(of)


@st.composite
def predicates(draw: st.DrawFn, names: tuple[str, ...] = (*POOL, "o")) -> Predicate:
    """A predicate with any comparator that its attribute has."""
    name = draw(st.sampled_from(names))
    comparator = draw(st.sampled_from(SCHEMA.attributes[name].comparators))
    if comparator in ("exists", "missing"):
        return Predicate(name, comparator)
    if comparator in PATTERNED:
        return Predicate(name, comparator, draw(st.sampled_from(PATTERNED[comparator])))
    constant = st.sampled_from(CONSTANTS[name])
    if comparator == "between":
        return Predicate(name, comparator, (draw(constant), draw(constant)))
    if comparator in LISTS:
        return Predicate(name, comparator, tuple(draw(st.lists(constant, min_size=1, max_size=3))))
    return Predicate(name, comparator, draw(constant))


def conditions(leaf: st.SearchStrategy[Condition] | None = None) -> st.SearchStrategy[Condition]:
    """Conditions of a few predicates, with any boolean structure."""
    return st.recursive(predicates() if leaf is None else leaf, grow, max_leaves=5)


def conjunctions(names: tuple[str, ...] = (*POOL, "o")) -> st.SearchStrategy[Condition]:
    """One to four predicates that must all hold."""
    lists = st.lists(predicates(names), min_size=1, max_size=4)
    return lists.map(lambda parts: parts[0] if len(parts) == 1 else And(tuple(parts)))


def expected(
    live: dict[Any, Condition], event: dict[str, Any], schema: Schema = SCHEMA
) -> set[Any]:
    """The ids that an event matches, by the definition of truth."""
    checked = schema.event(event)
    return {id for id, condition in live.items() if semantics.satisfies(condition, checked, schema)}


def fill(engine: Any, given: list[Condition]) -> dict[Any, Condition]:
    """Subscribe all conditions that are not refused as never true; gives what is live by id."""
    live: dict[Any, Condition] = {}
    for condition in given:
        try:
            live[engine.subscribe(condition)] = condition
        except NeverTrueError:
            continue
    return live


PREDICATES = pa.list_(
    pa.struct(
        [
            ("attribute", pa.string()),
            ("comparator", pa.string()),
            ("value", pa.float64()),
            ("text", pa.string()),
        ]
    )
)


def predicate_row(attribute: str, comparator: str, constant: Any = None) -> dict[str, Any]:
    """A predicate as the bulk door takes it: numbers as value, all else as text."""
    value, text = None, None
    if isinstance(constant, bool):
        text = "true" if constant else "false"
    elif isinstance(constant, str):
        text = constant
    elif constant is not None:
        value = float(constant)
    return {"attribute": attribute, "comparator": comparator, "value": value, "text": text}


def predicate_table(rows: list[Any], ids: list[Any] | None = None) -> pa.Table:
    """A table for `subscribe_table`."""
    return pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()) if ids is None else pa.array(ids),
            "predicates": pa.array(rows, PREDICATES),
        }
    )
