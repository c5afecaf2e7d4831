"""Whatever an event says to the reasoning operators, it is its own fault, and nobody else hears."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.operators import Runner
from tamis.operators.packs.reasoning import OntologyError, pack
from tamis.operators.packs.reasoning_ontology import Ontology

PACK = pack()
INVALID = ("http://x y", "<>", "rdf:a b", "{")


@pytest.mark.parametrize(
    ("fact", "says"),
    [
        (["bob", "weight", 10**30], "the object of fact 1 .*does not fit 64 bits"),
        (["bob", "weight", -(2**63) - 1], "the object of fact 1 .*does not fit 64 bits"),
        (["bob", "weight", float("inf")], "the object of fact 1 .*not a finite number"),
        (["bob", "weight", float("nan")], "the object of fact 1 .*not a finite number"),
        (["bob", "weight", "\udc80"], "the object of fact 1 .*lone surrogate"),
        (["\udc80", "weight", 5], "fact 1 .*lone surrogate"),
        (["bob", "\udc80", 5], "fact 1 .*lone surrogate"),
    ],
)
def test_values_and_names_that_no_condition_can_have(fact: list[Any], says: str) -> None:
    with pytest.raises(OntologyError, match=says):
        PACK[1](facts=[["bob", "weight", 2**63 - 1], fact])


def test_such_events_do_not_set_the_operator_aside() -> None:
    with Runner(faults=2) as runner:
        events: list[Any] = [([["bob", "weight", 10**30 + k]],) for k in range(6)]
        runner.call(PACK[1], events, ("bob", "weight", None))
        assert runner.report()["holds"].refused == 6
        found = runner.call(PACK[1], [([["bob", "weight", 5]],)], ("bob", "weight", None))
        assert found == [(("bob", "weight", 5),)]


WORDS = (
    *("bob", "car", "policeCar", "chases", "type", "subClassOf", "sameAs", "Class", "Thing"),
    *("owl:onProperty", "owl:hasValue", "owl:maxCardinality", "owl:propertyChainAxiom", "rdf:rest"),
    *("owl:intersectionOf", "rdf:first", "rdf:nil", "owl:hasKey", "differentFrom", "xsd:integer"),
    *INVALID,
)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(WORDS),
            st.sampled_from(WORDS),
            st.one_of(st.sampled_from(WORDS), st.integers(), st.floats(), st.booleans()),
        ),
        max_size=3,
    )
)
@pytest.mark.slow
def test_words_of_the_vocabulary_where_they_make_no_sense(facts: list[Any]) -> None:
    with Runner() as runner:
        runner.call(PACK[1], [(facts,)], (None, None, None))
        count = runner.report()["holds"]
    assert (count.raised, count.nonsense) == (0, 0), count.last


def test_rules_that_stumble_over_facts() -> None:
    with pytest.raises(OntologyError, match="the facts of the event are invalid: "):
        PACK[1](facts=[["owl:hasValue", "owl:maxCardinality", "owl:intersectionOf"]])


@pytest.mark.parametrize("name", INVALID)
def test_a_name_that_is_not_an_iri_is_accepted_quietly(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_a, holds, known = PACK
    is_a(subject=name)
    is_a(subject=name, concept=name)
    is_a.check((name,))
    known(subject=name)
    holds(facts=[[name, "chases", name]], subject=name)
    assert not caplog.records


def test_what_others_ask_rdflib_is_still_answered(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("rdflib.term").warning("for somebody else")
    assert [record.message for record in caplog.records] == ["for somebody else"]


def test_an_ontology_that_makes_no_sense_is_not_hushed_up(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "odd.ttl"
    path.write_text("<http://x/a b> a <http://x/c> .")
    Ontology(path)
    assert "does not look like a valid URI" in caplog.text
