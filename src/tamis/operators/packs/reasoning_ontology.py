"""An ontology with everything that follows from it, queried by readable names.

The rules are those of OWL 2 RL, and owlrl applies them: subclasses, subproperties, inverse,
symmetric and transitive properties, chains, restrictions. The closure is computed when the ontology
is loaded, so a query is a look-up.

The facts of an event can have any consequences, also for individuals of the ontology. So a new
closure is computed on a copy. For the ontology that comes with tamis, with 88 triples, this takes
about 0.1 s; the time grows with the ontology. The closures of the last few sets of facts are
cached: many conditions query one event, and a situation may last for many events.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from xml.sax import SAXException

from tamis.errors import OperatorError, suggestion
from tamis.operators.results import UnfitError, plain_value

try:
    from owlrl import OWLRL_Semantics
    from rdflib import OWL, RDF, RDFS, XSD, Graph, Literal, URIRef
    from rdflib.exceptions import Error as RdfError
    from rdflib.term import Node
    from rdflib.util import guess_format
except ModuleNotFoundError as missing:
    raise OperatorError(
        "the reasoning operators need rdflib and owlrl: pip install 'tamis[reasoning]'"
    ) from missing

MOST_FACTS = 200
"""The largest number of facts in an event: the rules join them, so the time grows fast."""

_SHIPPED = "vehicles.ttl"
_KEPT = 16  # cached closures of sets of facts
_EVENT = "urn:tamis:event#"  # individuals of an event only
_VOCABULARY = tuple(map(str, (RDF, RDFS, OWL, XSD)))
# Words of the vocabularies that need no prefix in a condition.
_WORDS = (
    *(RDF.type, RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, RDFS.label),
    *(RDFS.comment, OWL.sameAs, OWL.differentFrom, OWL.inverseOf, OWL.disjointWith, OWL.Thing),
    *(OWL.equivalentClass, OWL.equivalentProperty, OWL.Class, OWL.ObjectProperty),
)
_RULE_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_PREFIXES = {"rdf": str(RDF), "rdfs": str(RDFS), "owl": str(OWL), "xsd": str(XSD)}


_SILENT = ContextVar("_SILENT", default=False)
# Names come from events and conditions, and rdflib would warn about each that is not an IRI. Only
# our own queries are silenced.
logging.getLogger("rdflib.term").addFilter(lambda record: not _SILENT.get())


@contextmanager
def _silenced() -> Iterator[None]:
    before = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(before)


class OntologyError(OperatorError, ValueError):
    """An invalid ontology, name or fact."""


class Fact(NamedTuple):
    """One fact of an event. True equals 1 in Python, hence the kind of the object."""

    subject: str
    property: str
    object: str | int | float | bool
    kind: str


class Ontology:
    """An ontology and everything that follows from it.

    A name is a full IRI, a name with one of the ontology's prefixes (`ex:car`), or the part after
    the last `#`, `/` or `:` alone (`car`) if only one thing has it.

    >>> vehicles = Ontology.default()
    >>> sorted(vehicles.concepts("policeCar"))[:3]
    ['Thing', 'car', 'emergencyVehicle']
    >>> vehicles.rows("upperBay", "partOf", None)
    [('upperBay', 'partOf', 'atlantic'), ('upperBay', 'partOf', 'newYorkHarbour')]
    """

    def __init__(self, source: str | PathLike[str] | Graph) -> None:
        self._source, where = _read(source)
        self._closed = _Closure(self._source, self._source, where)
        self._concepts = _concepts(self._closed)
        self._with: Any = lru_cache(_KEPT)(self._extended)

    def __reduce__(self) -> tuple[Any, ...]:
        # The other side computes the closure again: this is faster than sending it.
        return _from_text, (self._source.serialize(format="turtle"),)

    @staticmethod
    @lru_cache(1)
    def default() -> Ontology:
        """The ontology that comes with tamis: vehicles and boats of a city."""
        return _from_text((files("tamis") / "data" / _SHIPPED).read_text(encoding="utf-8"))

    @_silenced()
    def check_concept(self, concept: str) -> None:
        """Raise if a condition cannot use a concept."""
        found = self._closed.named(concept)
        if found is not None and found in self._concepts.get(found, ()):
            return
        known = {self._closed.name(each) for each in set().union(*self._concepts.values())}
        hint = suggestion(concept, [each for each in known if each is not None])
        what = "unknown concept" if found is None else "not a concept of the ontology:"
        raise OntologyError(f"{what} {concept!r}{hint}")

    @_silenced()
    def is_a(self, subject: str, concept: str) -> bool:
        """Whether an individual is of a concept, or one concept a kind of another."""
        found, wanted = self._closed.named(subject), self._closed.named(concept)
        return found is not None and wanted in self._concepts.get(found, ())

    @_silenced()
    def concepts(self, subject: str) -> list[str]:
        """The names of all concepts of an individual or a concept; empty if it is unknown."""
        found = self._closed.named(subject)
        names = [] if found is None else map(self._closed.name, self._concepts.get(found, ()))
        return sorted(name for name in names if name is not None)

    @_silenced()
    def rows(
        self,
        subject: str | None,
        property: str | None,
        object: Any,
        facts: Sequence[Fact] = (),
    ) -> list[tuple[Any, ...]]:
        """All (subject, property, object) that hold; None stands for any.

        An unknown name has no rows. It is not an error: an event may contain new individuals.
        """
        closure = self._with(tuple(dict.fromkeys(facts))) if facts else self._closed
        return sorted(set(closure.rows(subject, property, object)), key=repr)

    def _extended(self, facts: tuple[Fact, ...]) -> _Closure:
        with_facts = _copy(self._source)
        for fact in facts:
            subject, property_ = (self._node(name) for name in (fact.subject, fact.property))
            with_facts.add((subject, property_, self._object(property_, fact.object)))
        try:
            return _Closure(with_facts, self._source, "the event's facts")
        except OntologyError:
            raise
        except _RULE_ERRORS as error:
            # The rules assume well-formed restrictions and lists, but an event may contain any.
            raise OntologyError(f"the facts of the event are invalid: {_short(error)}") from error

    def _node(self, name: str) -> Node:
        known = self._closed.named(name)
        return known if known is not None else URIRef(_EVENT + quote(name, safe=""))

    def _object(self, property_: Node, given: str | float) -> Node:
        literal = (property_, RDF.type, OWL.DatatypeProperty) in self._closed.graph
        if isinstance(given, str) and not literal:
            return self._node(given)
        return Literal(given)


class _Closure:
    """A closed graph and its names."""

    def __init__(self, source: Graph, prefixes: Graph, where: str) -> None:
        closed = _copy(source)
        # Without the axioms about the vocabularies: a thousand triples that no condition needs.
        rules = OWLRL_Semantics(closed, False, False, rdfs=False)
        rules.closure()
        if rules.error_messages:
            raise OntologyError(f"{where}: {_short(rules.error_messages[0])}")
        self.graph = _copy(closed, without_vocabulary=True)
        self._prefixes = {prefix: str(iri) for prefix, iri in prefixes.namespaces()} | _PREFIXES
        self._locals = _locals(self.graph)

    def named(self, name: str) -> URIRef | None:
        """The node of a name; None if the name is unknown."""
        whole = URIRef(name)
        if whole in self._locals.get(_local(whole), ()):
            return whole
        prefix, colon, rest = name.partition(":")
        if colon and prefix in self._prefixes:
            return URIRef(self._prefixes[prefix] + rest)
        found = self._locals.get(name, ())
        if len(found) > 1:
            raise OntologyError(
                f"{name!r} is ambiguous, {' or '.join(map(str, found))}; "
                "use a prefix or the full IRI"
            )
        return found[0] if found else None

    def name(self, node: Node) -> str | None:
        """The shortest name of a node; None if it has none."""
        if not isinstance(node, URIRef):
            return None
        local = _local(node)
        if self._locals.get(local, ()) == (node,):
            return local
        for prefix, iri in self._prefixes.items():
            if iri and node.startswith(iri):
                return f"{prefix}:{node.removeprefix(iri)}"
        return str(node)

    def rows(
        self, subject: str | None, property_: str | None, object_: Any
    ) -> Iterator[tuple[Any, ...]]:
        nodes: list[URIRef | None] = []
        for name in (subject, property_):
            node = None if name is None else self.named(name)
            if name is not None and node is None:
                return
            nodes.append(node)
        wanted = self.named(object_) if isinstance(object_, str) else None
        for found in self.graph.triples((nodes[0], nodes[1], wanted)):
            value = self._value(found[2]) if wanted is None else object_
            if object_ is not None and not _same(value, object_):
                continue
            row = (subject or self.name(found[0]), property_ or self.name(found[1]), value)
            if None not in row:  # a blank node has no name
                yield row

    def _value(self, node: Node) -> Any:
        if not isinstance(node, Literal):
            return self.name(node)
        value = node.toPython()
        if isinstance(value, bool | int | float):
            return value
        # A decimal is a number too; all other literals are text.
        return float(value) if node.datatype == XSD.decimal else str(node)


def facts_of(given: Any) -> list[Fact]:
    """The facts of an event, checked: a list of [subject, property, object]."""
    if not isinstance(given, list | tuple):
        raise OntologyError(f"facts are a list of [subject, property, object], got {_short(given)}")
    if len(given) > MOST_FACTS:
        raise OntologyError(f"an event has at most {MOST_FACTS} facts, got {len(given)}")
    return [_fact(at, each) for at, each in enumerate(given)]


def _fact(at: int, given: Any) -> Fact:
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise OntologyError(f"fact {at} is not [subject, property, object]: {_short(given)}")
    subject, property_, object_ = given
    for what, name in (("subject", subject), ("property", property_)):
        if not isinstance(name, str) or not name:
            raise OntologyError(f"the {what} of fact {at} is a name, got {_short(name)}")
        _check_value(f"the {what} of fact {at}", name)
    if not isinstance(object_, str | int | float) or object_ == "":
        raise OntologyError(f"the object of fact {at} is a name or a value, got {_short(object_)}")
    _check_value(f"the object of fact {at}", object_)
    return Fact(subject, property_, object_, type(object_).__name__)


def _check_value(what: str, value: str | float) -> None:
    """Refuse a value that an operator may not return."""
    try:
        plain_value(value, "any")
    except UnfitError as error:
        raise OntologyError(f"{what} cannot be used: {error}") from None


def _same(one: Any, other: Any) -> bool:
    """1 is the same as 1.0, but True is not a number."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _read(source: str | PathLike[str] | Graph) -> tuple[Graph, str]:
    """A copy, so that the caller cannot change it; and its name for messages."""
    if isinstance(source, Graph):
        return _copy(source), "the ontology"
    where = Path(source)
    try:
        text = where.read_text(encoding="utf-8")
        found = _parsed(text, guess_format(str(where)) or "turtle")
    except (OSError, ValueError, SyntaxError, SAXException, RdfError) as error:
        raise OntologyError(f"{source}: cannot be read as an ontology: {error}") from error
    return found, str(source)


def _parsed(text: str, form: str = "turtle") -> Graph:
    return Graph(bind_namespaces="none").parse(data=text, format=form)


def _from_text(turtle: str) -> Ontology:
    return Ontology(_parsed(turtle))


def _copy(graph: Graph, without_vocabulary: bool = False) -> Graph:
    """The same triples and prefixes, optionally without those about the vocabularies."""
    new = Graph(bind_namespaces="none")
    for prefix, iri in graph.namespaces():
        new.bind(prefix, iri)
    for triple in graph:
        if not (without_vocabulary and _of_vocabulary(triple[0])):
            new.add(triple)
    return new


def _concepts(closure: _Closure) -> dict[Node, set[Node]]:
    """The concepts of every individual, and the broader concepts of every concept."""
    graph, found = closure.graph, defaultdict[Node, set[Node]](set)
    kinds = {o for _, o in graph.subject_objects(RDF.type) if not _of_vocabulary(o)}
    kinds |= {s for each in (OWL.Class, RDFS.Class) for s in graph.subjects(RDF.type, each)}
    kinds |= {end for ends in graph.subject_objects(RDFS.subClassOf) for end in ends}
    for each in kinds:
        found[each].add(each)
    for word in (RDF.type, RDFS.subClassOf):
        for subject, kind in graph.subject_objects(word):
            # That a concept is a "class" does not matter to subscribers.
            if kind == OWL.Thing or not _of_vocabulary(kind):
                found[subject].add(kind)

    return {node: {kind for kind in of if isinstance(kind, URIRef)} for node, of in found.items()}


def _locals(graph: Graph) -> dict[str, tuple[URIRef, ...]]:
    """The nodes of each local name. Those of the ontology hide those of the vocabularies."""
    own = {node for triple in graph for node in triple if isinstance(node, URIRef)}
    found = defaultdict[str, list[URIRef]](list)
    for node in sorted(each for each in own if not _of_vocabulary(each)):
        found[_local(node)].append(node)
    words = {_local(word): (word,) for word in _WORDS}
    return words | {name: tuple(nodes) for name, nodes in found.items()}


def _local(node: URIRef) -> str:
    for mark in "#/:":
        if mark in node:
            return unquote(node.rpartition(mark)[2])
    return str(node)


def _of_vocabulary(node: Node) -> bool:
    return isinstance(node, URIRef) and str(node).startswith(_VOCABULARY)


def _short(given: Any) -> str:
    shown = given if isinstance(given, str) else repr(given)
    return shown if len(shown) <= 200 else shown[:200] + "…"
