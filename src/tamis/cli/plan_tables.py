"""The tables that `tamis plan` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tamis.match.plan import (
    ANY,
    CELLS,
    COMBINATION,
    DENSE,
    SPARSE,
    VALUE,
    Choice,
    Cut,
    Placement,
    Plan,
    Route,
)

_FAMILIES = {SPARSE: "bitmaps, few hold", DENSE: "bitmaps, many hold"}
_OTHERS = {VALUE: "values", CELLS: "runs of cells", ANY: "attributes", COMBINATION: "combinations"}
_OF_ROUTES = (
    "Of an event in the mean, as expected: look-ups of keys or lines of bitmap that are read, "
    "clauses met, and ns.\nsaves: against the same clauses as bitmaps, look-ups paid."
)
_OF_CUTS = (
    "bound: by this share of events. exact: intervals that begin and end with a cell, which then "
    "tells all of them."
)
_OF_WAYS = "Not in the plan: over all clauses it would save less than its look-ups cost."
_WAYS = 5  # that are shown of those the plan does not have


@dataclass(frozen=True)
class Measured:
    """Matching, as it went just now."""

    events: int
    us: float  # an event, without encoding
    matches: float  # of clauses, an event


def show(
    console: Console, name: str, subscriptions: int, plan: Plan, measured: Measured | None
) -> None:
    """Print all of a plan."""
    console.print(Text.assemble((name, "bold"), f": {subscriptions:,} subscriptions"))
    if not plan.clauses:
        console.print("Nothing to lay out.")
        return
    console.print(_made_for(plan))
    console.print()
    console.print(_routes(plan))
    console.print(Text(_OF_ROUTES, "dim"))
    console.print()
    console.print(_expected(plan, measured))
    for route in plan.routes:
        if route.columns:
            console.print()
            console.print(_columns(route))
    if plan.cuts:
        console.print()
        console.print(_cuts(plan.cuts))
        console.print(Text(_OF_CUTS, "dim"))
    console.print()
    console.print(_costs(plan))
    for number, choice in enumerate(plan.choices, 1):
        console.print()
        console.print(_choice(number, len(plan.choices), choice))
        console.print(
            Text(f"Expected to hold for {100 * choice.likely:.2g} % of events. {_OF_WAYS}", "dim")
        )


def _made_for(plan: Plan) -> Text:
    events = (
        f"{plan.events:,} events"
        if plan.events
        else "no events yet: taken to bind what clauses ask about"
    )
    text = Text(f"{plan.clauses:,} clauses, laid out for {events}")
    if plan.moving:
        text.append(f"\n{plan.moving:,} clauses are still to move from the plan before", "yellow")
    return text


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(
            column, justify="right" if place else "left", no_wrap=place > 0, overflow="fold"
        )
    return table


def _routes(plan: Plan) -> Table:
    table = _table(
        "route", "clauses", "entries", "buckets,\nblocks", "MB", "look-ups,\nlines", "met", "ns",
        "saves\nns",
    )  # fmt: skip
    for route in plan.routes:
        bitmaps = route.sort in _FAMILIES
        table.add_row(
            Text(_line(route), style="" if route.attributes or bitmaps else "dim"),
            f"{route.clauses:,}",
            f"{route.entries:,}",
            f"{route.parts:,}",
            _mega(route.bytes),
            short(route.look_ups),
            short(route.met),
            short(route.ns),
            "" if bitmaps else short(route.saved_ns),
        )
    rest = plan.bytes - sum(route.bytes for route in plan.routes) - plan.table_bytes
    table.add_row(Text("the clauses themselves", "dim"), "", "", "", _mega(plan.table_bytes))
    table.add_row(Text("cells, and room for more", "dim"), "", "", "", _mega(rest))
    table.add_row(
        Text("all", style="bold"),
        f"{plan.clauses:,}",
        f"{sum(route.entries for route in plan.routes):,}",
        "",
        _mega(plan.bytes),
        "",
        short(plan.met),
        Text(short(plan.ns), style="bold"),
        style="bold",
    )
    return table


def _line(route: Route) -> str:
    older = " (plan before)" if route.older else ""
    if route.together > 1:
        return f"and {route.together:,} more {_OTHERS[route.sort]}{older}"
    return place(route) + older


def place(way: Placement | Route) -> str:
    """A place for clauses in words."""
    names = " + ".join(map(str, way.attributes))
    if way.sort == VALUE:
        return f"value of {names}"
    if way.sort == CELLS:
        return f"cells of {names}" + (f", {way.cells:,} together" if way.cells > 1 else "")
    if way.sort == ANY:
        return f"{names}, whatever its value"
    return f"values of {names}" if way.sort == COMBINATION else _FAMILIES[way.sort]


def _expected(plan: Plan, measured: Measured | None) -> Text:
    text = Text.assemble(
        "expected       ", (f"{short(plan.ns / 1000)} µs", "bold"),
        f" an event, {short(plan.matches)} clauses of it hold",
    )  # fmt: skip
    if measured is not None:
        text.append("\nmeasured now   ")
        text.append(f"{short(measured.us)} µs", "bold")
        text.append(
            f" an event, {short(measured.matches)} clauses of it hold; "
            f"{measured.events:,} events at once, encoded before"
        )
    return text


def _columns(route: Route) -> Group:
    """What the bitmaps of a family are of."""
    columns = (f"{each.attribute} {each.rows:,} ({each.bound:.0%})" for each in route.columns)
    head = ": lines of a block by attribute, and how many events bind it"
    return Group(
        Text.assemble((_line(route), "bold"), head),
        Padding(Text(", ".join(columns)), (0, 0, 0, 2), expand=False),
    )


def _cuts(cuts: Sequence[Cut]) -> Table:
    table = _table("attribute", "bound", "intervals", "cells", "rows", "exact")
    for cut in cuts:
        name = str(cut.attribute) if cut.attribute is not None else f"and {cut.together:,} more"
        table.add_row(
            Text(name, style="" if cut.attribute is not None else "dim"),
            f"{cut.bound:.1%}",
            f"{cut.intervals:,}",
            f"{cut.cells:,}",
            f"{cut.rows:,}",
            "all" if cut.exact == 1 else f"{cut.exact:.1%}",
        )
    return table


def _costs(plan: Plan) -> Text:
    said = ", ".join(f"{name.replace('_', ' ')} {cost:.3g}" for name, cost in plan.costs.items())
    return Text(f"costs, in ns: {said}", style="dim")


def _choice(number: int, of: int, choice: Choice) -> Table:
    table = _table("the clause lies in" if of == 1 else f"clause {number} of {of} lies in", "ns")
    table.add_row(Text(place(choice.taken), style="green"), short(choice.taken.ns))
    shown = 0
    for way in choice.others:
        if way.planned or shown < _WAYS:
            shown += not way.planned
            table.add_row(
                Text.assemble(f"not {place(way)}", (_why_not(way, choice.taken), "dim")),
                short(way.ns),
            )
    return table


def _why_not(way: Placement, taken: Placement) -> str:
    """Why a place was not taken, where its cost does not say it."""
    if not way.planned:
        return "; not in the plan"
    if way.sort in _FAMILIES and taken.sort in _FAMILIES:
        return "; for those that hold " + ("more often" if way.sort == DENSE else "less often")
    return ""


def short(value: float) -> str:
    """Three digits, or all of a number that has more."""
    if value and abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _mega(size: int) -> str:
    return f"{size / 1e6:,.1f}" if size >= 50_000 else f"{size / 1e6:.3f}"
