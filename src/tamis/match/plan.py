"""A plan as data: where clauses are placed, the expected cost, and why.

This module does not read an index; the matcher's `plan` method does. Attributes are positions, as
everywhere in a matcher. `Plan.named` replaces them by the names that an engine knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

Attribute = int | str
VALUE, CELLS, ANY, COMBINATION = "value", "cells", "any", "combination"
SPARSE, DENSE = "sparse", "dense"
LINES = 12  # entries of a kind that are listed individually; the others are summed up in one


@dataclass(frozen=True)
class BitmapColumn:
    """An attribute that is a column of a family of bitmaps."""

    attribute: Attribute
    rows: int  # lines: one per row of cells, and one for "not bound"
    bound: float  # share of events that bind the attribute


@dataclass(frozen=True, kw_only=True)
class Route:
    """One way to find clauses: a kind of bucket key, or a family of bitmaps.

    The sorts are `value` (one value of an attribute), `cells` (a run of that many `cells`), `any`
    (any value, as long as the attribute is bound), `combination` (values of several attributes
    together), and the families `sparse` and `dense`. Expected figures are means per event.
    """

    sort: str
    attributes: tuple[Attribute, ...] = ()  # empty if several keys are summed up
    cells: int = 0  # cells per run, or 0
    together: int = 1  # the number of keys that this entry sums up
    older: bool = False  # part of the previous plan: its clauses are moving to the new one
    clauses: int
    parts: int  # buckets, or blocks of a family
    entries: int  # a clause has one entry per key
    bytes: int
    look_ups: float  # keys looked up, or bitmap lines read
    met: float  # clauses visited
    ns: float  # total time
    saved_ns: float = 0.0  # compared with placing its clauses in a family; 0 for a family
    columns: tuple[BitmapColumn, ...] = ()


@dataclass(frozen=True)
class Cut:
    """How the values of an attribute are divided into cells."""

    attribute: Attribute | None  # None if several attributes are summed up
    together: int
    bound: float  # share of events that bind it; the mean if several are summed up
    intervals: int  # in clauses
    cells: int
    rows: int
    exact: float  # share of the intervals whose ends are cell boundaries


@dataclass(frozen=True)
class Placement:
    """The mean cost per event of one clause in one place."""

    sort: str
    attributes: tuple[Attribute, ...]
    cells: int
    ns: float
    planned: bool  # whether the plan uses this place


@dataclass(frozen=True)
class Choice:
    """Where one clause is placed, and the alternatives."""

    likely: float  # expected share of events for which it holds
    taken: Placement
    others: tuple[Placement, ...]  # planned ones first, then by cost


@dataclass(frozen=True)
class Plan:
    """The decisions of a matcher for its clauses."""

    clauses: int
    events: int  # the number of events the plan is based on
    moving: int  # clauses that are still where the previous plan put them
    bytes: int  # in total
    table_bytes: int  # of which the clause table
    look_ups: float  # bucket keys
    met: float
    matches: float
    ns: float
    routes: tuple[Route, ...]
    cuts: tuple[Cut, ...]
    costs: Mapping[str, float]  # of each step, in nanoseconds; `dense_from` is a share of events
    choices: tuple[Choice, ...] = ()

    def named(self, names: Sequence[str]) -> Plan:
        """The same plan, with attribute names in place of positions."""

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
        """The plan in JSON types."""
        return asdict(self)
