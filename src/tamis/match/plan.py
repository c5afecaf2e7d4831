"""A plan in plain words and numbers: where clauses lie, what that is expected to cost, and why.

Nothing here looks at an index; `planned` does. Attributes are positions, as everywhere in a
matcher, until `Plan.named` gives them the names that an engine knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

Attribute = int | str
VALUE, CELLS, ANY, COMBINATION = "value", "cells", "any", "combination"
SPARSE, DENSE = "sparse", "dense"
LINES = 12  # of a sort that are told one by one; the others are told together


@dataclass(frozen=True)
class BitmapColumn:
    """An attribute that a family of bitmaps has lines for."""

    attribute: Attribute
    rows: int  # lines: one for each row of cells, and one for "not bound"
    bound: float  # share of events


@dataclass(frozen=True)
class Route:
    """One way to find clauses: a sort of key of buckets, or a family of bitmaps.

    The sorts are `value` (of an attribute, as it is), `cells` (runs of so many `cells`), `any`
    (whatever the value, as long as there is one), `combination` (values of several attributes
    together), and the families `sparse` and `dense`. What is expected is in the mean of an event.
    """

    sort: str
    attributes: tuple[Attribute, ...]  # none where several are told together
    cells: int  # of a run, or 0
    together: int  # keys that this tells of
    older: bool  # of the plan before: its clauses are moving to the new one
    clauses: int
    parts: int  # buckets, or blocks of a family
    entries: int  # a clause has one for each of its keys
    bytes: int
    look_ups: float  # of keys, or lines of bitmap that are read
    met: float  # clauses
    ns: float  # what all this takes
    saved_ns: float  # against its clauses in a family; 0 for a family itself
    columns: tuple[BitmapColumn, ...] = ()


@dataclass(frozen=True)
class Cut:
    """How the values of an attribute are cut."""

    attribute: Attribute | None  # None where several are told together
    together: int
    bound: float  # share of events; the mean where several are told together
    intervals: int  # of clauses
    cells: int
    rows: int
    exact: float  # share of the intervals that begin and end with a cell


@dataclass(frozen=True)
class Placement:
    """What one clause costs an event in one place, in the mean."""

    sort: str
    attributes: tuple[Attribute, ...]
    cells: int
    ns: float
    planned: bool  # whether the plan has this place at all


@dataclass(frozen=True)
class Choice:
    """Where one clause lies, and where it could."""

    likely: float  # share of events that it is expected to hold for
    taken: Placement
    others: tuple[Placement, ...]  # the cheapest first


@dataclass(frozen=True)
class Plan:
    """What a matcher has decided for the clauses that it holds."""

    clauses: int
    events: int  # that it was made for
    moving: int  # clauses that still lie where the plan before put them
    bytes: int  # of everything
    table_bytes: int  # of that, the clauses themselves
    look_ups: float  # keys of buckets
    met: float
    matches: float
    ns: float
    routes: tuple[Route, ...]
    cuts: tuple[Cut, ...]
    costs: Mapping[str, float]  # of the steps, in nanoseconds, and from what share on "many" hold
    choices: tuple[Choice, ...] = ()

    def named(self, names: Sequence[str]) -> Plan:
        """The same with the names of attributes for their positions."""

        def name(attribute: Any) -> Any:
            return names[attribute] if isinstance(attribute, int) else attribute

        def all_named(given: Any) -> Any:
            return replace(given, attributes=tuple(map(name, given.attributes)))

        def one_named(given: Any) -> Any:
            return replace(given, attribute=name(given.attribute))

        return replace(
            self,
            routes=tuple(
                replace(all_named(route), columns=tuple(map(one_named, route.columns)))
                for route in self.routes
            ),
            cuts=tuple(map(one_named, self.cuts)),
            choices=tuple(
                replace(
                    choice,
                    taken=all_named(choice.taken),
                    others=tuple(map(all_named, choice.others)),
                )
                for choice in self.choices
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Such as JSON can say."""
        return asdict(self)

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Plan:
        """What `to_dict` gave, perhaps by way of JSON."""
        return Plan(
            **{
                **given,
                "routes": tuple(_route(each) for each in given["routes"]),
                "cuts": tuple(Cut(**each) for each in given["cuts"]),
                "choices": tuple(
                    Choice(each["likely"], _way(each["taken"]), tuple(map(_way, each["others"])))
                    for each in given["choices"]
                ),
            }
        )


def _route(given: Mapping[str, Any]) -> Route:
    columns = tuple(BitmapColumn(**each) for each in given["columns"])
    return Route(**{**given, "attributes": tuple(given["attributes"]), "columns": columns})


def _way(given: Mapping[str, Any]) -> Placement:
    return Placement(**{**given, "attributes": tuple(given["attributes"])})
