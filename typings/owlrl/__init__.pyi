"""The part of owlrl that tamis uses."""

from rdflib import Graph

class OWLRL_Semantics:  # noqa: N801 - as the library calls it
    error_messages: list[str]
    def __init__(self, graph: Graph, axioms: bool, daxioms: bool, rdfs: bool = ...) -> None: ...
    def closure(self) -> None: ...
