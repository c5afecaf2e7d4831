"""Operators that ask an ontology: `pip install 'tamis[reasoning]'`.

    isA(emergencyVehicle)                         what the event's subject is, by inference
    holds(?who, chases, ?whom)                    what follows from the event's facts
    known(?boat, operatedBy, coastGuard)          what follows from the ontology alone

`isA` reads the attribute `subject`, the name of an individual or of a concept of the ontology.
`holds` reads the opaque attribute `facts`, a list of [subject, property, object] that hold for this
event only; an event that binds none is not looked at, as with every attribute that an operator
reads, and `known` asks about the ontology itself. The default ontology is a small one of vehicles
and boats, `data/vehicles.ttl`; `pack` makes the same operators over your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

from tamis.model.operator import Parameter, Signature
from tamis.operators.operator import Operator
from tamis.operators.packs.reasoning_ontology import Ontology, OntologyError, facts_of
from tamis.operators.serialization import made_by

if TYPE_CHECKING:
    from rdflib import Graph

__all__ = ["Ontology", "OntologyError", "Reasoned", "pack"]

_TRIPLE = {"subject": "text", "property": "text", "object": "any"}


class Reasoned(Operator):
    """An operator over an ontology, which knows what it can never be asked."""

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
) -> tuple[Reasoned, Reasoned, Reasoned]:
    """`isA`, `holds` and `known` over an ontology: a file (Turtle, RDF/XML, …) or an rdflib graph.

    What follows from it is computed here. `attribute` and `facts` are what `isA` and `holds` read;
    `prefix` is put before their names, so that several packs can live side by side.

    >>> [each.name for each in pack(attribute="seen.what", prefix="city_")]
    ['city_isA', 'city_holds', 'city_known']
    """
    if ontology is None:
        asked = Ontology.default()
    else:
        asked = ontology if isinstance(ontology, Ontology) else Ontology(ontology)
    subject_as, facts_as = attribute.replace(".", "_"), facts.replace(".", "_")

    # What is read is handed over by the attribute's name, which is not known here: hence **read.
    def is_a(concept: str | None = None, **read: Any) -> list[str] | None:
        """Whether what the event is about is of a concept; or all that it is."""
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
        """What follows from the ontology and the event's facts."""
        return asked.rows(subject, property, object, facts_of(read[facts_as]))

    def known(
        subject: str | None = None, property: str | None = None, object: Any = None
    ) -> list[tuple[Any, ...]]:
        """What follows from the ontology."""
        return asked.rows(subject, property, object)

    def no_concept(concept: str | None) -> str | None:
        return None if concept is None else asked.refusal(concept)

    made = (
        Reasoned(
            prefix + "isA",
            is_a,
            reads=(attribute,),
            gives={"concept": "text"},
            refusal=no_concept,
            cost=0.01,
            run="here",
        ),
        # Pure Python: a thread does not make it quicker, but its caller stops waiting in time.
        Reasoned(
            prefix + "holds",
            holds,
            reads=(facts,),
            gives=_TRIPLE,
            cost=100.0,
            timeout=10.0,
            run="thread",
        ),
        Reasoned(prefix + "known", known, reads=(), gives=_TRIPLE, cost=0.02, run="here"),
    )
    given = {
        "ontology": None if ontology is None else asked,
        "attribute": attribute,
        "facts": facts,
        "prefix": prefix,
    }
    return made_by(pack, given, made)


@cache
def _default() -> dict[str, Reasoned]:
    return {each.name: each for each in pack()}


def __getattr__(name: str) -> Reasoned:
    # Made when first asked for: whoever has an ontology of their own need not wait for ours.
    if name in ("isA", "holds", "known"):
        return _default()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
