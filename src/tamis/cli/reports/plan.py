"""The tables of `tamis plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tamis.cli.terminal.numbers import percent, short
from tamis.cli.terminal.tables import Cell, Columns, record_table, table
from tamis.errors import counted
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
_ROUTES_CAPTION = (
    "Expected averages for an event: look-ups of keys or lines of bitmaps read, clauses met, and "
    "ns. saves: against the same clauses in bitmaps, look-ups included."
)
_CUTS_CAPTION = (
    "bound: share of events that bind the attribute. exact: intervals that begin and end with a "
    "cell, so that the cell decides."
)
_WAYS_CAPTION = "Not in the plan: over all clauses it would save less than its look-ups cost."
_WAYS = 5  # shown of those that are not in the plan


@dataclass(frozen=True)
class MatchTiming:
    """How long matching took just now."""

    events: int
    us: float  # an event, without encoding
    matches: float  # clauses an event


def show(
    console: Console, name: str, subscriptions: int, plan: Plan, timing: MatchTiming | None
) -> None:
    """Print a plan."""
    console.print(Text.assemble((name, "bold"), f": {counted(subscriptions, 'subscription')}"))
    if not plan.clauses:
        console.print("There are no clauses to place.")
        return
    console.print(_made_for(plan))
    console.print()
    console.print(_routes(plan))
    console.print()
    console.print(_expected(plan, timing))
    for route in plan.routes:
        if route.columns:
            console.print()
            console.print(_columns(route))
    if plan.cuts:
        console.print()
        console.print(record_table(_CUTS, plan.cuts, _CUTS_CAPTION))
    console.print()
    console.print(_costs(plan))
    for number, choice in enumerate(plan.choices, 1):
        console.print()
        console.print(_choice(number, len(plan.choices), choice))


def _made_for(plan: Plan) -> Text:
    events = (
        counted(plan.events, "event")
        if plan.events
        else "no events yet: they are assumed to bind what clauses mention"
    )
    text = Text(f"{counted(plan.clauses, 'clause')}, planned for {events}")
    if plan.moving:
        moving = counted(plan.moving, "clause is", "clauses are")
        text.append(f"\n{moving} still to move from the previous plan", "yellow")
    return text


def _routes(plan: Plan) -> RenderableType:
    headings = (
        "route", "clauses", "entries", "buckets,\nblocks", "MB", "look-ups,\nlines", "met", "ns",
        "saves\nns",
    )  # fmt: skip
    return table("wrrrrrrrr", headings, _route_rows(plan), _ROUTES_CAPTION)


def _route_rows(plan: Plan) -> Iterator[Sequence[Cell]]:
    for route in plan.routes:
        bitmaps = route.sort in _FAMILIES
        yield (
            Text(_line(route), style="" if route.attributes or bitmaps else "dim"),
            f"{route.clauses:,}",
            f"{route.entries:,}",
            f"{route.parts:,}",
            _megabytes(route.bytes),
            short(route.look_ups),
            short(route.met),
            short(route.ns),
            "" if bitmaps else short(route.saved_ns),
        )
    rest = plan.bytes - sum(route.bytes for route in plan.routes) - plan.table_bytes
    yield Text("the clauses themselves", "dim"), "", "", "", _megabytes(plan.table_bytes)
    yield Text("cells and spare capacity", "dim"), "", "", "", _megabytes(rest)
    totals = (
        "all",
        f"{plan.clauses:,}",
        f"{sum(route.entries for route in plan.routes):,}",
        "",
        _megabytes(plan.bytes),
        "",
        short(plan.met),
        short(plan.ns),
    )
    yield tuple(Text(total, style="bold") for total in totals)


def _line(route: Route) -> str:
    older = " (previous plan)" if route.older else ""
    if route.together > 1:
        return f"and {route.together:,} more {_OTHERS[route.sort]}{older}"
    return describe_place(route) + older


def describe_place(way: Placement | Route) -> str:
    """A place for clauses in words."""
    names = " + ".join(map(str, way.attributes))
    if way.sort == VALUE:
        return f"value of {names}"
    if way.sort == CELLS:
        return f"cells of {names}" + (f", {way.cells:,} together" if way.cells > 1 else "")
    if way.sort == ANY:
        return f"{names}, any value"
    return f"values of {names}" if way.sort == COMBINATION else _FAMILIES[way.sort]


def _expected(plan: Plan, timing: MatchTiming | None) -> Text:
    text = Text.assemble(
        "expected       ", (f"{short(plan.ns / 1000)} µs", "bold"),
        f" an event, {short(plan.matches)} clauses match",
    )  # fmt: skip
    if timing is not None:
        text.append("\nmeasured now   ")
        text.append(f"{short(timing.us)} µs", "bold")
        text.append(
            f" an event, {short(timing.matches)} clauses match; "
            f"{timing.events:,} events at once, encoded before"
        )
    return text


def _columns(route: Route) -> Group:
    """The attributes of a family of bitmaps."""
    columns = (f"{each.attribute} {each.rows:,} ({each.bound:.0%})" for each in route.columns)
    head = ": lines of a block by attribute, and the share of events that bind it"
    return Group(
        Text.assemble((_line(route), "bold"), head),
        Padding(Text(", ".join(columns)), (0, 0, 0, 2), expand=False),
    )


_CUTS: Columns[Cut] = (
    ("w", "attribute", lambda cut: _more(cut) if cut.attribute is None else str(cut.attribute)),
    ("r", "bound", lambda cut: f"{cut.bound:.1%}"),
    ("r", "intervals", lambda cut: f"{cut.intervals:,}"),
    ("r", "cells", lambda cut: f"{cut.cells:,}"),
    ("r", "rows", lambda cut: f"{cut.rows:,}"),
    ("r", "exact", lambda cut: "all" if cut.exact == 1 else f"{cut.exact:.1%}"),
)


def _more(cut: Cut) -> Text:
    return Text(f"and {cut.together:,} more", "dim")


def _costs(plan: Plan) -> Text:
    costs = ", ".join(f"{name.replace('_', ' ')} {cost:.3g}" for name, cost in plan.costs.items())
    return Text(f"costs, in ns: {costs}", style="dim")


def _choice(number: int, of: int, choice: Choice) -> RenderableType:
    title = "the clause lies in" if of == 1 else f"clause {number} of {of} lies in"
    caption = f"Expected to match {percent(choice.likely)} of events. {_WAYS_CAPTION}"
    return table("wr", (title, "ns"), _choice_rows(choice), caption)


def _choice_rows(choice: Choice) -> Iterator[Sequence[Cell]]:
    yield Text(describe_place(choice.taken), style="green"), short(choice.taken.ns)
    shown = 0
    for way in choice.others:
        if way.planned or shown < _WAYS:
            shown += not way.planned
            why = (_why_not(way, choice.taken), "dim")
            yield Text.assemble(f"not {describe_place(way)}", why), short(way.ns)


def _why_not(way: Placement, taken: Placement) -> str:
    """Why a place was not taken, where its cost does not explain it."""
    if not way.planned:
        return "; not in the plan"
    if way.sort in _FAMILIES and taken.sort in _FAMILIES:
        return "; for clauses that match " + ("more often" if way.sort == DENSE else "less often")
    return ""


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}" if size >= 50_000 else f"{size / 1e6:.3f}"
