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

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

from tamis.model.operator import Parameter, Signature
from tamis.operators.operator import Operator
from tamis.operators.packs.reasoning_ontology import Ontology, OntologyError, facts_of
from tamis.operators.serialization import remember_pack_call

if TYPE_CHECKING:
    from rdflib import Graph

__all__ = ["Ontology", "OntologyError", "ReasoningOperator", "pack"]

_TRIPLE = {"subject": "text", "property": "text", "object": "any"}


class ReasoningOperator(Operator):
    """An operator over an ontology; it refuses constants that can never hold."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        reads: Sequence[str],
        gives: Mapping[str, str],
        refusal: Callable[..., str | None] | None = None,
        cost: float,
        timeout: float = 1.0,
        run: str,
    ) -> None:
        function.__name__ = function.__qualname__ = name
        parameters = tuple(Parameter(each, kind, True) for each, kind in gives.items())
        self._refusal = refusal
        super().__init__(
            function,
            Signature(name, parameters, tuple(reads)),
            cost=cost,
            timeout=timeout,
            run=run,
        )

    def check(self, arguments: Sequence[Any]) -> str | None:
        """Why these constants can never hold (None stands for a variable); else None."""
        return None if self._refusal is None else self._refusal(**self.handed(arguments))


def pack(
    ontology: str | PathLike[str] | Graph | Ontology | None = None,
    *,
    attribute: str = "subject",
    facts: str = "facts",
    prefix: str = "",
) -> tuple[ReasoningOperator, ReasoningOperator, ReasoningOperator]:
    """`isA`, `holds` and `known` over an ontology: a file (Turtle, RDF/XML, …) or an rdflib graph.

    The inference happens here. `isA` reads `attribute`, and `holds` reads `facts`. `prefix` goes
    before their names, so that one engine can have several packs.

    >>> [each.name for each in pack(attribute="seen.what", prefix="city_")]
    ['city_isA', 'city_holds', 'city_known']
    """
    if ontology is None:
        asked = Ontology.default()
    else:
        asked = ontology if isinstance(ontology, Ontology) else Ontology(ontology)
    subject_as, facts_as = attribute.replace(".", "_"), facts.replace(".", "_")

    # The name of the attribute is only known at run time: hence **read.
    def is_a(concept: str | None = None, **read: Any) -> list[str] | None:
        """Whether the subject of the event is of a concept; or all its concepts."""
        subject = read[subject_as]
        if not isinstance(subject, str):
            raise OntologyError(f"{attribute} is a name of the ontology, got {subject!r:.80}")
        if concept is None:
            return asked.concepts(subject)
        return [concept] if asked.is_a(subject, concept) else None

    def holds(
        subject: str | None = None,
        property: str | None = None,
        object: Any = None,
        **read: Any,
    ) -> list[tuple[Any, ...]]:
        """What follows from the ontology and the facts of the event."""
        return asked.rows(subject, property, object, facts_of(read[facts_as]))

    def known(
        subject: str | None = None, property: str | None = None, object: Any = None
    ) -> list[tuple[Any, ...]]:
        """What follows from the ontology."""
        return asked.rows(subject, property, object)

    def no_concept(concept: str | None) -> str | None:
        return None if concept is None else asked.refusal(concept)

    made = (
        ReasoningOperator(
            prefix + "isA",
            is_a,
            reads=(attribute,),
            gives={"concept": "text"},
            refusal=no_concept,
            cost=0.01,
            run="here",
        ),
        # Pure Python: a thread does not make it faster, but the caller can stop waiting.
        ReasoningOperator(
            prefix + "holds",
            holds,
            reads=(facts,),
            gives=_TRIPLE,
            cost=100.0,
            timeout=10.0,
            run="thread",
        ),
        ReasoningOperator(prefix + "known", known, reads=(), gives=_TRIPLE, cost=0.02, run="here"),
    )
    given = {
        "ontology": None if ontology is None else asked,
        "attribute": attribute,
        "facts": facts,
        "prefix": prefix,
    }
    return remember_pack_call(pack, given, made)


@cache
def _default() -> dict[str, ReasoningOperator]:
    return {each.name: each for each in pack()}


def __getattr__(name: str) -> ReasoningOperator:
    # Made at first use: a program with its own ontology need not wait for ours.
    if name in ("isA", "holds", "known"):
        return _default()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
