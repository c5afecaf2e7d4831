"""The fifth extension rule: a domain grows by new values, and no answer about others changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Schema
from tamis.errors import SchemaError
from tamis.model.domain import Domain
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.schemas.growth import check_growth

CENTURY = {"kind": "enumerated", "values": ["XVI", "XVII"], "order": [["XVI", "XVII"]]}
SCHEMA = Schema.from_dict(
    {
        "domains": {
            "century": CENTURY,
            "airport": {"kind": "hierarchy", "tree": {"west": {"SFO": {}}, "east": {"JFK": {}}}},
        },
        "attributes": {
            "made": "century",
            "sold": "century",
            "carved": CENTURY,
            "dest": "airport",
            "colour": {"kind": "enumerated", "values": ["red", "green"]},
            "size": "integer",
        },
        "event_types": {"lot": {"made": "mandatory", "dest": "optional", "colour": "optional"}},
    }
)


def test_values_come_with_their_pairs() -> None:
    wider = SCHEMA.grow_domain("century", ["XV", "XVIII"], [("XV", "XVI"), ("XVII", "XVIII")])
    assert wider.version == SCHEMA.version + 1
    wider.check_extends(SCHEMA)
    # All attributes that can be compared with each other grow together.
    assert wider.attributes["made"] is wider.attributes["carved"] is wider.domains["century"]
    assert wider.event({"made": "XV"}).values["made"] == ("XV",)
    under = wider.grow_domain("airport", {"LAX": "west", "south": (), "MIA": ["south", "east"]})
    assert under.domains["airport"].parents["MIA"] == ("south", "east")  # type: ignore[attr-defined]
    blue = under.grow_domain("colour", ["blue"]).event({"made": "XV", "colour": "blue"})
    assert blue.values["colour"] == ("blue",)
    for newer in (wider, under):
        assert Schema.from_dict(newer.to_dict()) == newer
        Schema.from_dict(newer.to_dict()).check_extends(SCHEMA)
        with pytest.raises(SchemaError, match="was dropped"):
            SCHEMA.check_extends(newer)


def test_a_value_may_come_between_others() -> None:
    wider = SCHEMA.grow_domain("century", ["1600"], [("XVI", "1600"), ("1600", "XVII")])
    wider.check_extends(SCHEMA)
    coast = SCHEMA.grow_domain("airport", {"bay": ["west"], "SFO": ["bay"]})
    assert coast.domains["airport"].parents["SFO"] == ("west", "bay")  # type: ignore[attr-defined]
    coast.check_extends(SCHEMA)


REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (("colour", ["blue"], [("red", "green")]), "new pair of two old values"),
    (("airport", {"LAX": "west", "SFO": "east"}), "'SFO' is a kind of 'east' is a new pair"),
    (("airport", {"hub": "east", "SFO": "hub"}), "'SFO' is a kind of 'east' would begin to hold"),
    (("airport", {"a": "east", "b": "a", "west": "b"}), "'west' is a kind of 'east' would begin"),
    (("century", ["XVII"]), "listed twice"),
    (("century", []), "no new values"),
    (("century", ["XV"], [("XV", "XVII", "XVI")]), "pairs of names"),
    (("century", ["XV"], [("XV", "XIV")]), "'XIV' in 'order' is not a value"),
    (("century", ["XV"], [("XVII", "XV"), ("XV", "XVI")]), "cycle"),
    (("century", {"XV": "XVI"}), "expected a list of names"),
    (("century", "XV"), "expected a list of names"),
    (("century", [15]), "put it in quotes"),
    (("airport", {"LAX": "wset"}), "did you mean 'west'"),
    (("airport", "LAX"), "a mapping of names to their parents"),
    (("airport", ["LAX"], [("LAX", "west")]), "map each name to its parents"),
    (("airport", 5), "expected names"),
    (("size", ["9"]), "only enumerations and hierarchies"),
    (("sice", ["9"]), "did you mean 'size'"),
    (("event_type", ["bid"]), "unknown domain"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_growth_that_breaks_the_rule_is_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        SCHEMA.grow_domain(*arguments)


def _changed(**domains: Any) -> Schema:
    document = SCHEMA.to_dict()
    document["domains"] = document["domains"] | domains
    return Schema.from_dict(document)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (_changed(century={**CENTURY, "values": ["XVII"], "order": []}), "'XVI' was dropped"),
        (_changed(century={**CENTURY, "order": []}), "'XVI' < 'XVII' was dropped"),
        (_changed(century={"kind": "enumerated", "values": ["XVI", "XVII"]}), "order was dropped"),
        (_changed(century={"kind": "hierarchy", "tree": {"XVI": {}, "XVII": {}}}), "was changed"),
        (_changed(century={**CENTURY, "values": ["XVI", "XVII", "XX"]}), "let both grow"),
    ],
)
def test_a_document_that_does_more_is_refused(schema: Schema, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        schema.check_extends(SCHEMA)


def test_a_list_of_values_may_be_in_another_order() -> None:
    older = Schema.from_dict({"attributes": {"c": {"kind": "enumerated", "values": ["a", "b"]}}})
    kinds = {"kind": "enumerated", "values": ["c", "b", "a"]}
    Schema.from_dict({"attributes": {"c": kinds}}).check_extends(older)


# -- against a plain account -----------------------------------------------------------------------

NAMES = "abcde"
NEW = "xy"
Pairs = frozenset[tuple[str, str]]


def _pairs(names: str) -> st.SearchStrategy[Pairs]:
    """Pairs without a cycle: by a random ranking of the names."""
    return st.permutations(names).flatmap(
        lambda ranked: st.frozensets(
            st.tuples(st.integers(0, len(names) - 1), st.integers(0, len(names) - 1)).filter(
                lambda each: each[0] < each[1]
            ),
            max_size=6,
        ).map(lambda chosen: frozenset((ranked[low], ranked[high]) for low, high in chosen))
    )


def _closure(pairs: Iterable[tuple[str, str]]) -> Pairs:
    found = frozenset(pairs)
    while True:
        more = {(a, d) for (a, b), (c, d) in product(found, found) if b == c}
        if more <= found:
            return found
        found |= more


def _enumerated(names: str, pairs: Pairs) -> Domain:
    return Enumerated(names, sorted(pairs))


def _hierarchy(names: str, pairs: Pairs) -> Domain:
    parents: Mapping[str, list[str]] = {name: [] for name in names}
    for low, high in sorted(pairs):
        parents[low].append(high)
    return Hierarchy(parents)


@given(_pairs(NAMES), _pairs(NAMES + NEW), st.sampled_from([_enumerated, _hierarchy]))
def test_growth_is_accepted_exactly_if_old_values_compare_as_before(
    old: Pairs, more: Pairs, make: Any
) -> None:
    both = old | {pair for pair in more if set(pair) & set(NEW)}
    closed = _closure(both)
    if any(low == high for low, high in closed):
        return  # a cycle
    same = {pair for pair in closed if not set(pair) & set(NEW)} == _closure(old)
    with nullcontext() if same else pytest.raises(SchemaError, match="would begin to hold"):
        check_growth(make(NAMES, old), make(NAMES + NEW, both), "domain 'd'")
