"""Operators over an ontology: `pip install 'tamis[reasoning]'`.

    isA(emergencyVehicle)                         the subject of the event is of this concept
    holds(?who, chases, ?whom)                    it follows from the facts of the event
    known(?boat, operatedBy, coastGuard)          it follows from the ontology alone

`isA` reads the attribute `subject`, the name of an individual or a concept of the ontology. `holds`
reads the opaque attribute `facts`, a list of [subject, property, object] for this event only; it is
not called for an event without `facts`. `known` reads nothing of the event. The default ontology is
a small one of vehicles and boats, `data/vehicles.ttl`; `pack` makes the same operators over your
own.
"""

from __future__ import annotations

from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

from tamis.operators.packs.pack_operator import PackOperator
from tamis.operators.packs.reasoning_ontology import Ontology, OntologyError, facts_of
from tamis.operators.serialization import remember_pack_call

if TYPE_CHECKING:
    from rdflib import Graph

__all__ = ["Ontology", "OntologyError", "pack"]

_TRIPLE = {"subject": "text", "property": "text", "object": "any"}


def pack(
    ontology: str | PathLike[str] | Graph | Ontology | None = None,
    *,
    attribute: str = "subject",
    facts: str = "facts",
    prefix: str = "",
) -> tuple[PackOperator, PackOperator, PackOperator]:
    """`isA`, `holds` and `known` over an ontology: a file (Turtle, RDF/XML, …) or an rdflib graph.

    The inference happens here. `isA` reads `attribute`, and `holds` reads `facts`. `prefix` goes
    before their names, so that one engine can have several packs.

    >>> [each.name for each in pack(attribute="seen.what", prefix="city_")]
    ['city_isA', 'city_holds', 'city_known']
    """
    if ontology is None:
        used = Ontology.default()
    else:
        used = ontology if isinstance(ontology, Ontology) else Ontology(ontology)
    subject_as, facts_as = attribute.replace(".", "_"), facts.replace(".", "_")

    # The name of the attribute is only known at run time: hence **read.
    def is_a(concept: str | None = None, **read: Any) -> list[str] | None:
        """Whether the subject of the event is of a concept; or all its concepts."""
        subject = read[subject_as]
        if not isinstance(subject, str):
            raise OntologyError(f"{attribute} is a name of the ontology, got {subject!r:.80}")
        if concept is None:
            return used.concepts(subject)
        return [concept] if used.is_a(subject, concept) else None

    def holds(
        subject: str | None = None,
        property: str | None = None,
        object: Any = None,
        **read: Any,
    ) -> list[tuple[Any, ...]]:
        """What follows from the ontology and the facts of the event."""
        return used.rows(subject, property, object, facts_of(read[facts_as]))

    def known(
        subject: str | None = None, property: str | None = None, object: Any = None
    ) -> list[tuple[Any, ...]]:
        """What follows from the ontology."""
        return used.rows(subject, property, object)

    def check_concept(concept: str | None) -> None:
        if concept is not None:
            used.check_concept(concept)

    made = (
        PackOperator(
            prefix + "isA",
            is_a,
            reads=(attribute,),
            gives={"concept": "text"},
            validate=check_concept,
            cost=0.01,
            run="here",
        ),
        # Pure Python: a thread does not make it faster, but the caller can stop waiting.
        PackOperator(
            prefix + "holds",
            holds,
            reads=(facts,),
            gives=_TRIPLE,
            cost=100.0,
            timeout=10.0,
            run="thread",
        ),
        PackOperator(prefix + "known", known, reads=(), gives=_TRIPLE, cost=0.02, run="here"),
    )
    given = {
        "ontology": None if ontology is None else used,
        "attribute": attribute,
        "facts": facts,
        "prefix": prefix,
    }
    return remember_pack_call(pack, given, made)


@cache
def _default() -> dict[str, PackOperator]:
    return {each.name: each for each in pack()}


def __getattr__(name: str) -> PackOperator:
    # Made at first use: a program with its own ontology need not wait for ours.
    if name in ("isA", "holds", "known"):
        return _default()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
