"""Operators that ask an ontology, against closures worked out by hand."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import OWL, RDF, RDFS, Graph, Namespace

from tamis.errors import TamisError
from tamis.operators.packs import reasoning
from tamis.operators.packs.pack_operator import PackOperator
from tamis.operators.packs.reasoning import Ontology, OntologyError, pack
from tamis.operators.packs.reasoning_ontology import MOST_FACTS, facts_of

HEAD = """
@prefix ex: <https://example.org/zoo#> .
@prefix other: <https://example.org/other/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
ZOO = """
ex:animal a owl:Class .
ex:bird a owl:Class ; rdfs:subClassOf ex:animal .
ex:parrot a owl:Class ; rdfs:subClassOf ex:bird .
ex:fish a owl:Class ; rdfs:subClassOf ex:animal ; owl:disjointWith ex:bird .
ex:keeper a owl:Class .
ex:polly a ex:parrot ; ex:weighs 0.4 ; ex:legs 2 ; ex:tame true ; ex:called "Polly" .
ex:wanda a ex:fish .
ex:feeds rdfs:subPropertyOf ex:caresFor ; rdfs:domain ex:keeper .
ex:caresFor owl:inverseOf ex:caredForBy .
ex:beside a owl:SymmetricProperty .
ex:within a owl:TransitiveProperty .
ex:called a owl:DatatypeProperty .
ex:ann ex:feeds ex:polly .
ex:cage ex:within ex:house . ex:house ex:within ex:zoo . ex:zoo ex:within ex:town .
ex:cage ex:beside ex:pond .
ex:lives owl:propertyChainAxiom ( ex:lives ex:within ) .
ex:polly ex:lives ex:cage .
other:pond a ex:keeper .
"""


def ontology(turtle: str) -> Ontology:
    graph = Graph()
    graph.parse(data=HEAD + turtle, format="turtle")
    return Ontology(graph)


@pytest.fixture(scope="module")
def zoo() -> Ontology:
    return ontology(ZOO)


@pytest.fixture(scope="module")
def zoo_pack(zoo: Ontology) -> tuple[PackOperator, PackOperator, PackOperator]:
    return pack(zoo)


# --- closures worked out by hand ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "concepts"),
    [
        ("polly", {"parrot", "bird", "animal", "Thing"}),  # an individual
        ("parrot", {"parrot", "bird", "animal", "Thing"}),  # a concept
        ("animal", {"animal", "Thing"}),
        ("ann", {"keeper", "Thing"}),  # by the domain of feeds
        ("cage", set()),  # nothing says what it is
        ("nobody", set()),
    ],
)
def test_what_things_are(zoo: Ontology, subject: str, concepts: set[str]) -> None:
    assert set(zoo.concepts(subject)) == concepts
    for concept in ("parrot", "bird", "animal", "fish", "keeper", "Thing"):
        assert zoo.is_a(subject, concept) == (concept in concepts)


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        # A chain of three.
        (("cage", "within", None), {"house", "zoo", "town"}),
        (("house", "within", None), {"zoo", "town"}),
        # A subproperty, and the inverse of what it is a subproperty of.
        (("ann", "caresFor", None), {"polly"}),
        (("polly", "caredForBy", None), {"ann"}),
        (("polly", "feeds", None), set()),
        # Symmetry.
        (("ex:pond", "beside", None), {"cage"}),
        # A chain of properties: polly lives in whatever her cage is within.
        (("polly", "lives", None), {"cage", "house", "zoo", "town"}),
        # Values.
        (("polly", "legs", None), {2}),
        (("polly", "weighs", None), {0.4}),
        (("polly", "tame", None), {True}),
        (("polly", "called", None), {"Polly"}),
        (("polly", "unheardOf", None), set()),
    ],
)
def test_what_holds(zoo: Ontology, asked: tuple[Any, Any, Any], rows: set[Any]) -> None:
    subject, property_, _ = asked
    assert zoo.rows(*asked) == sorted(((subject, property_, each) for each in rows), key=repr)


def test_variables_stand_anywhere(zoo: Ontology) -> None:
    assert zoo.rows(None, "caresFor", None) == [("ann", "caresFor", "polly")]
    assert zoo.rows(None, "within", "zoo") == [
        ("cage", "within", "zoo"),
        ("house", "within", "zoo"),
    ]
    between = {row[1] for row in zoo.rows("ann", None, "polly")}
    assert between == {"feeds", "caresFor"}
    everything = zoo.rows(None, None, None)
    assert len(everything) == len(set(everything)) > 50
    assert set(zoo.rows("cage", None, None)) <= set(everything)
    assert not any(row[0] in ("Datatype", "integer", "Nothing") for row in everything)


def test_constants_are_true_or_not(zoo: Ontology) -> None:
    assert zoo.rows("cage", "within", "town") == [("cage", "within", "town")]
    assert zoo.rows("town", "within", "cage") == []
    assert zoo.rows("parrot", "subClassOf", "animal") == [("parrot", "subClassOf", "animal")]
    assert zoo.rows("polly", "type", "bird") == [("polly", "type", "bird")]


@pytest.mark.parametrize(
    ("property_", "value", "holds"),
    [
        *(("legs", value, True) for value in (2, 2.0)),
        *(("legs", value, False) for value in (3, True, "2", "legs")),
        ("tame", True, True),
        ("tame", 1, False),
    ],
)
def test_a_number_is_a_number_and_nothing_else(
    zoo: Ontology, property_: str, value: object, holds: bool
) -> None:
    assert bool(zoo.rows("polly", property_, value)) == holds


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
@settings(max_examples=25)
def test_subclasses_are_reachability(edges: list[tuple[int, int]]) -> None:
    """Against a search of our own in a random graph of concepts, circles included."""
    ex = Namespace("https://example.org/")
    graph = Graph()
    for node in range(7):
        graph.add((ex[f"c{node}"], RDF.type, OWL.Class))
    for low, high in edges:
        graph.add((ex[f"c{low}"], RDFS.subClassOf, ex[f"c{high}"]))
    made = Ontology(graph)
    for start in range(7):
        reached, todo = {start}, [start]
        while todo:
            here = todo.pop()
            new = {high for low, high in edges if low == here} - reached
            reached |= new
            todo += new
        assert set(made.concepts(f"c{start}")) == {f"c{node}" for node in reached} | {"Thing"}


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["parrot", "ex:parrot", "https://example.org/zoo#parrot"])
def test_a_name_may_be_written_in_three_ways(zoo: Ontology, name: str) -> None:
    assert zoo.is_a(name, "bird")
    assert zoo.is_a("polly", name)
    assert zoo.rows("polly", "type", name) == [("polly", "type", name)]


def test_a_name_of_two_things_needs_its_prefix(zoo: Ontology) -> None:
    with pytest.raises(OntologyError, match=r"'pond' is ambiguous, .*other/pond or .*zoo#pond"):
        zoo.rows("pond", None, None)
    assert zoo.is_a("other:pond", "keeper")
    assert not zoo.is_a("ex:pond", "keeper")
    assert ("cage", "beside", "ex:pond") in zoo.rows(None, "beside", None)


def test_words_of_the_vocabulary_need_no_prefix_unless_the_ontology_has_them() -> None:
    made = ontology("ex:dog a owl:Class . ex:rex a ex:dog ; ex:label ex:red .")
    assert made.rows("rex", "type", "dog") == [("rex", "type", "dog")]
    assert made.rows("rex", "rdf:type", "dog") == [("rex", "rdf:type", "dog")]
    assert made.rows("rex", "label", None) == [("rex", "label", "red")]


@pytest.mark.parametrize(
    ("concept", "says"),
    [
        ("parot", "unknown concept 'parot'; did you mean 'parrot'?"),
        ("polly", "not a concept of the ontology: 'polly'"),
        ("pond", "use a prefix"),
        ("parrot", None),
        ("Thing", None),
    ],
)
def test_an_unknown_concept_is_refused_before_any_event(
    zoo_pack: tuple[PackOperator, ...], concept: str, says: str | None
) -> None:
    found = zoo_pack[0].check([concept])
    assert found is None if says is None else found is not None and says in found
    assert zoo_pack[0].check([None]) is None


# --- the event's own facts ---------------------------------------------------------------------


def rows(
    zoo: Ontology, facts: Sequence[Any], subject: Any, property_: Any, object_: Any
) -> list[tuple[Any, ...]]:
    return zoo.rows(subject, property_, object_, facts_of(facts))


def test_facts_join_the_closure_for_one_event(zoo: Ontology) -> None:
    facts = [["bob", "feeds", "wanda"], ["wanda", "lives", "tank"], ["tank", "within", "cage"]]
    assert rows(zoo, facts, "wanda", "caredForBy", None) == [("wanda", "caredForBy", "bob")]
    assert rows(zoo, facts, "bob", "type", "keeper") == [("bob", "type", "keeper")]
    found = {row[2] for row in rows(zoo, facts, "wanda", "lives", None)}
    assert found == {"tank", "cage", "house", "zoo", "town"}
    # And then they are gone.
    assert zoo.rows("wanda", "caredForBy", None) == []
    assert rows(zoo, [["x", "beside", "y"]], "wanda", "caredForBy", None) == []


@pytest.mark.parametrize(
    ("facts", "asked", "found"),
    [
        (
            [["emu", "subClassOf", "bird"], ["edna", "type", "emu"]],
            ("edna", "type", "animal"),
            "animal",
        ),
        ([["edna", "pecks", "ann"]], ("edna", "pecks", None), "ann"),
        ([["wanda", "weighs", 3]], ("wanda", "weighs", None), 3),
        ([["wanda", "tame", True]], ("wanda", "tame", True), True),
        ([["wanda", "called", "Wanda B."]], ("wanda", "called", "Wanda B."), "Wanda B."),
        ([["x", "is", 1]], ("x", "is", None), 1),
        ([["x", "is", True]], ("x", "is", None), True),
        ([], ("cage", "within", "town"), "town"),
    ],
)
def test_facts_may_bring_concepts_properties_and_values(
    zoo: Ontology, facts: list[list[Any]], asked: tuple[Any, Any, Any], found: object
) -> None:
    (row,) = rows(zoo, facts, *asked)
    assert row == (*asked[:2], found)
    assert type(row[2]) is type(found), "1 is not True"


@pytest.mark.parametrize("name", ["two words", "a/b#c", "ä:ö", "100 %", "<x>"])
def test_individuals_may_have_any_name(zoo: Ontology, name: str) -> None:
    facts = [[name, "feeds", "polly"]]
    assert (name, "caresFor", "polly") in rows(zoo, facts, None, "caresFor", None)
    assert rows(zoo, facts, name, "caresFor", None) == [(name, "caresFor", "polly")]


@pytest.mark.slow
def test_a_kept_closure_is_the_same_as_a_new_one(zoo: Ontology) -> None:
    facts = [[["bob", "feeds", f"fish{k}"]] for k in range(20)]  # more than are kept
    first = [rows(zoo, some, "bob", "caresFor", None) for some in facts]
    assert [rows(zoo, some, "bob", "caresFor", None) for some in facts] == first
    assert [rows(ontology(ZOO), some, "bob", "caresFor", None) for some in facts[:2]] == first[:2]


def test_facts_that_contradict_the_ontology_are_refused(zoo: Ontology) -> None:
    with pytest.raises(OntologyError, match=r"the event's facts: Disjoint classes .* common"):
        rows(zoo, [["wanda", "type", "bird"]], "wanda", "type", None)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ("polly feeds ann", "facts are a list of"),
        ({"a": "b"}, "facts are a list of"),
        ([["a", "b"]], "fact 0 is no"),
        ([["a", "b", "c"], "abc"], "fact 1 is no"),
        ([[1, "b", "c"]], "the subject of fact 0 is a name, got 1"),
        ([["a", "", "c"]], "the property of fact 0 is a name"),
        ([["a", "b", None]], "the object of fact 0"),
        ([["a", "b", ["c"]]], "the object of fact 0"),
        ([["a", "b", "c"]] * (MOST_FACTS + 1), "at most 200 facts, got 201"),
    ],
)
def test_malformed_facts_are_refused(
    zoo_pack: tuple[PackOperator, ...], facts: object, says: str
) -> None:
    with pytest.raises(ValueError, match="fact") as refused:
        zoo_pack[1](facts=facts)
    assert says in str(refused.value)
    assert isinstance(refused.value, TamisError)


# --- the operators -----------------------------------------------------------------------------


def test_is_a_answers_a_constant_with_it_and_a_variable_with_all(
    zoo_pack: tuple[PackOperator, ...],
) -> None:
    is_a = zoo_pack[0]
    assert is_a(subject="polly", concept="ex:bird") == ["ex:bird"]
    assert is_a(subject="polly", concept="fish") is None
    assert is_a(subject="polly", concept=None) == ["Thing", "animal", "bird", "parrot"]
    with pytest.raises(OntologyError, match="subject is a name of the ontology, got 5"):
        is_a(subject=5, concept="bird")


def test_signatures_say_what_is_read_and_what_is_free() -> None:
    is_a, holds, known = pack(attribute="seen.what", facts="seen.facts", prefix="zoo_")
    assert [each.name for each in (is_a, holds, known)] == ["zoo_isA", "zoo_holds", "zoo_known"]
    assert is_a.signature.reads == ("seen.what",)
    assert holds.signature.reads == ("seen.facts",)
    assert known.signature.reads == ()
    assert is_a(seen_what="policeCar", concept="car") == ["car"]
    assert holds(seen_facts=[["x", "chases", "y"]], subject="x", property="near") == [
        ("x", "near", "y")
    ]
    assert all(place.free for each in (is_a, holds, known) for place in each.signature.parameters)


def test_constants_are_handed_over_and_so_tell_calls_apart(
    zoo_pack: tuple[PackOperator, ...],
) -> None:
    is_a, holds, _ = zoo_pack
    assert is_a.key(["bird"]) != is_a.key(["fish"])
    assert holds.key([None, "within", None]) == holds.key([None, "within", None])
    assert holds.key([None, "within", None]) != holds.key(["cage", "within", None])


def test_a_pack_travels_to_another_process(zoo_pack: tuple[PackOperator, ...]) -> None:
    there = pickle.loads(cloudpickle.dumps(zoo_pack[0]))
    assert there(subject="polly", concept=None) == zoo_pack[0](subject="polly", concept=None)


# --- ontologies --------------------------------------------------------------------------------


def test_an_ontology_is_read_from_a_file(tmp_path: Path) -> None:
    graph = Graph()
    graph.parse(data=HEAD + ZOO, format="turtle")
    for name, form in (("zoo.ttl", "turtle"), ("zoo.rdf", "xml"), ("zoo.nt", "nt")):
        where = tmp_path / name
        graph.serialize(where, format=form, encoding="utf-8")
        assert pack(where)[0](subject="polly", concept="bird") == ["bird"]


def test_a_graph_is_copied() -> None:
    graph = Graph()
    graph.parse(data=HEAD + ZOO, format="turtle")
    before = len(graph)
    made = Ontology(graph)
    assert len(graph) == before
    graph.remove((None, None, None))
    assert rows(made, [["x", "feeds", "y"]], "cage", "within", "town")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken.ttl", "ex:a ex:b"),
        ("broken.rdf", "<rdf"),
        ("broken.nt", "<a> <b>"),
        ("none.ttl", None),
    ],
)
def test_a_file_that_is_not_an_ontology_is_refused(
    tmp_path: Path, name: str, text: str | None
) -> None:
    where = tmp_path / name
    if text is not None:
        where.write_text(text)
    with pytest.raises(TamisError, match=f"{name}: cannot be read as an ontology"):
        pack(where)


def test_an_ontology_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(TamisError, match="the ontology: Disjoint classes"):
        ontology(ZOO + "ex:wanda a ex:parrot .")


def test_our_own_ontology() -> None:
    vehicles = Ontology.default()
    assert vehicles.is_a("policeCar", "car")
    assert vehicles.is_a("coastGuardBoat", "boat")
    assert not vehicles.is_a("coastGuardBoat", "car")
    assert vehicles.is_a("cutter12", "officialVehicle")  # since an authority operates it
    assert not vehicles.is_a("libertyBelle", "officialVehicle")
    assert vehicles.rows("harbourTours", "operates", None) == [
        ("harbourTours", "operates", "libertyBelle")
    ]
    facts = [["libertyBelle", "locatedIn", "upperBay"]]
    found = {row[2] for row in rows(vehicles, facts, "libertyBelle", "locatedIn", None)}
    assert found == {"upperBay", "newYorkHarbour", "atlantic"}


def test_the_default_operators_are_found_by_name() -> None:
    assert reasoning.isA is reasoning.isA
    assert reasoning.isA(subject="cutter12", concept="boat") == ["boat"]
    assert reasoning.known(None, "operatedBy", "coastGuard") == [
        ("cutter12", "operatedBy", "coastGuard")
    ]
    with pytest.raises(AttributeError, match="'isB'"):
        _ = reasoning.isB
