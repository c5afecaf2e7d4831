"""The tables of `tamis spark stats`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from tamis.cli.terminal.numbers import duration, percent, shortened
from tamis.cli.terminal.printable import one_line
from tamis.cli.terminal.tables import Cell, table
from tamis.errors import counted
from tamis.store.stats import (
    SHARES,
    AttributeStats,
    PredicateStats,
    Stats,
    SubscriptionStats,
    Value,
)

_ATTRIBUTES = 40  # shown at most
_FREQUENT = 3  # values shown of each
_ENDS = 5  # predicates shown from either end
_VALUE = 24  # letters of a value
_CONDITION = 100  # letters of a condition
_RARE = 0.001  # values that fewer events have are not shown
_ATTRIBUTES_CAPTION = (
    "bound in: share of events that bind the attribute. each: mean number of values. distinct: "
    "approximate number of different values. half below: the median. most frequent: with the "
    "share of events that have the value."
)
_PREDICATES_CAPTION = (
    "true for: share of events that pass the ordinary predicates of the same clause. A scheduler "
    "evaluates rare and cheap predicates first."
)


def show(console: Console, stats: Stats) -> None:
    """Print statistics of past events."""
    console.print(_head(stats), soft_wrap=True)
    if stats.dead and stats.reason:
        console.print(Text(one_line(f"  for example: {stats.reason}"), "dim"), soft_wrap=True)
    if not stats.events:
        return
    console.print()
    console.print(_attributes(stats))
    more = len(stats.attributes) - _ATTRIBUTES
    if more > 0:
        console.print(Text(f"and {more:,} more attributes, in stats.json", "dim"))
    if stats.subscriptions is not None:
        console.print()
        _matches(console, stats.subscriptions)
    if stats.predicates:
        console.print()
        console.print(_predicates(stats.predicates))
    console.print()


def _head(stats: Stats) -> Text:
    text = Text.assemble((stats.of, "bold"), f": {counted(stats.events, 'event')}")
    if stats.first is not None and stats.last is not None:
        first, last = (_moment(each.appended) for each in (stats.first, stats.last))
        text.append(f", appended from {first} to {last}")
    if stats.dead:
        text.append(f"; {stats.dead:,} dead, not counted here", "yellow")
    return text


def _attributes(stats: Stats) -> RenderableType:
    headings = (
        "attribute", "kind", "bound in", "each", "distinct", "from – to", "half below",
        "most frequent",
    )  # fmt: skip
    rows = (
        (
            name,
            each.kind,
            percent(each.bound / stats.events),
            f"{each.values / each.bound:.2g}" if each.values > each.bound else "",
            "" if each.distinct is None else f"{each.distinct:,}",
            _span(each),
            _shown(each.quantiles[SHARES.index(0.5)], each.kind) if each.quantiles else "",
            _most(each),
        )
        for name, each in list(stats.attributes.items())[:_ATTRIBUTES]
    )
    return table("wwrrrwrw", headings, rows, _ATTRIBUTES_CAPTION)


def _span(each: AttributeStats) -> str:
    if each.low is None or each.high is None:
        return ""
    return f"{_shown(each.low, each.kind)} – {_shown(each.high, each.kind)}"


def _most(each: AttributeStats) -> str:
    some = [(value, share) for value, share in each.frequent if share >= _RARE]
    shown = [f"{_shown(value, each.kind)} ({percent(share)})" for value, share in some[:_FREQUENT]]
    return ", ".join(shown) + (", …" if len(some) > _FREQUENT else "")


def _matches(console: Console, stats: SubscriptionStats) -> None:
    events = max(1, stats.events)
    console.print(
        Text.assemble(
            (counted(stats.subscriptions, "subscription"), "bold"),
            f", matched with {counted(stats.events, 'event')} of the sample: ",
            (f"{stats.pairs / events:,.3g} pairs an event", "bold"),
            f", {percent(stats.matched / events)} of the events match a subscription",
        ),
        soft_wrap=True,
    )
    if stats.most:
        rows = (
            (
                str(each.id),
                percent(each.share),
                shortened(each.condition or "all events", _CONDITION),
            )
            for each in stats.most
        )
        console.print(table("wrw", ("matched most", "by events", "condition"), rows))


def _predicates(predicates: Mapping[str, PredicateStats]) -> RenderableType:
    headings = ("predicate on an operator", "true for", "a call takes", "seen", "faults")
    return table("wrrrr", headings, _predicate_rows(predicates), _PREDICATES_CAPTION)


def _predicate_rows(predicates: Mapping[str, PredicateStats]) -> Iterator[Sequence[Cell]]:
    """The predicates that are true least often, and those that are true most often."""
    order = sorted(predicates, key=lambda text: (predicates[text].share, text))
    between = len(order) - 2 * _ENDS
    for place, text in enumerate(order):
        if between > 0 and _ENDS <= place < _ENDS + between:
            if place == _ENDS:
                yield [Text(f"… and {between:,} more", "dim")]
            continue
        each = predicates[text]
        yield (
            shortened(text, _CONDITION),
            percent(each.share),
            duration(each.seconds),
            f"{each.seen:,}",
            f"{each.faults:,}" if each.faults else "",
        )


def _moment(text: str) -> str:
    return text[:16].replace("T", " ")


def _shown(value: Value, kind: str = "") -> str:
    if kind == "timestamp":
        return _moment(str(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    return shortened(value, _VALUE)
