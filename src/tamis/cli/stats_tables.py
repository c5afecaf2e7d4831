"""The tables that `tamis spark stats` shows."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.store.stats import (
    SHARES,
    AttributeStats,
    PredicateStats,
    Stats,
    SubscriptionStats,
    Value,
)

_LINES = 40  # attributes that are shown
_FREQUENT = 3  # values of each
_FEW = 5  # predicates that are shown from either end
_LONG = 24  # characters of a value
_RIGHT = (
    "bound in", "each", "distinct", "half below", "by events", "true for", "a call takes", "seen",
    "faults",
)  # fmt: skip
_RARE = 0.001  # a value that fewer events have is not worth a line
_OF_ATTRIBUTES = (
    "bound in: by this share of events. each: values of an event that binds it, in the mean. "
    "distinct: about how many\ndifferent ones. half below: the median. most frequent: with the "
    "share of events that have it."
)
_OF_PREDICATES = (
    "true for: this share of events that pass the ordinary predicates beside it. The rarer and the "
    "cheaper, the sooner\na scheduler has it evaluated."
)


def show(console: Console, stats: Stats) -> None:
    """Print what a person wants to know of statistics."""
    console.print(_head(stats), soft_wrap=True)
    if stats.dead and stats.reason:
        console.print(Text(f"  such as: {stats.reason}", "dim"), soft_wrap=True)
    if not stats.events:
        return
    console.print()
    console.print(_attributes(stats))
    more = len(stats.attributes) - _LINES
    if more > 0:
        console.print(Text(f"and {more:,} more attributes, in stats.json", "dim"))
    console.print(Text(_OF_ATTRIBUTES, "dim"))
    if stats.subscriptions is not None:
        console.print()
        _matched(console, stats.subscriptions)
    if stats.predicates:
        console.print()
        console.print(_predicates(stats.predicates))
        console.print(Text(_OF_PREDICATES, "dim"))
    console.print()


def _head(stats: Stats) -> Text:
    text = Text.assemble((stats.of, "bold"), f": {stats.events:,} events")
    if stats.first is not None and stats.last is not None:
        first, last = (_moment(each.appended) for each in (stats.first, stats.last))
        text.append(f", appended from {first} to {last}")
    if stats.dead:
        text.append(f"; {stats.dead:,} dead, which are not counted here", "yellow")
    return text


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        right = column in _RIGHT
        table.add_column(
            column, justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    return table


def _attributes(stats: Stats) -> Table:
    table = _table(
        "attribute", "kind", "bound in", "each", "distinct", "from – to", "half below",
        "most frequent",
    )  # fmt: skip
    for name, each in list(stats.attributes.items())[:_LINES]:
        table.add_row(
            name,
            each.kind,
            percent(each.bound / stats.events),
            f"{each.values / each.bound:.2g}" if each.values > each.bound else "",
            "" if each.distinct is None else f"{each.distinct:,}",
            _span(each),
            _shown(each.quantiles[SHARES.index(0.5)], each.kind) if each.quantiles else "",
            _most(each),
        )
    return table


def _span(each: AttributeStats) -> str:
    if each.low is None or each.high is None:
        return ""
    return f"{_shown(each.low, each.kind)} – {_shown(each.high, each.kind)}"


def _most(each: AttributeStats) -> str:
    some = [(value, share) for value, share in each.frequent if share >= _RARE]
    shown = [f"{_shown(value, each.kind)} ({percent(share)})" for value, share in some[:_FREQUENT]]
    return ", ".join(shown) + (", …" if len(some) > _FREQUENT else "")


def _matched(console: Console, told: SubscriptionStats) -> None:
    events = max(1, told.events)
    console.print(
        Text.assemble(
            (f"{told.subscriptions:,} subscriptions", "bold"),
            f", matched with {told.events:,} events of the sample: ",
            (f"{told.pairs / events:,.3g} pairs an event", "bold"),
            f", {percent(told.matched / events)} of events match somebody",
        ),
        soft_wrap=True,
    )
    if told.most:
        table = _table("matched most", "by events", "condition")
        for each in told.most:
            table.add_row(str(each.id), percent(each.share), _cut(each.condition or "all events"))
        console.print(table)


def _predicates(predicates: Mapping[str, PredicateStats]) -> Table:
    """Those that are true least often, and most often."""
    table = _table("predicate on an operator", "true for", "a call takes", "seen", "faults")
    order = sorted(predicates, key=lambda text: (predicates[text].share, text))
    shown = order if len(order) <= 2 * _FEW else [*order[:_FEW], "", *order[-_FEW:]]
    for text in shown:
        if not text:
            table.add_row(Text(f"… and {len(order) - 2 * _FEW:,} more", "dim"))
            continue
        each = predicates[text]
        faults = f"{each.faults:,}" if each.faults else ""
        table.add_row(
            _cut(text), percent(each.share), duration(each.seconds), f"{each.seen:,}", faults
        )
    return table


def percent(share: float) -> str:
    """A share, to read.

    >>> percent(0.9961), percent(0.0123), percent(0.0004), percent(0)
    ('100%', '1.2%', '<0.1%', '0%')
    """
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def duration(seconds: float) -> str:
    """Seconds, in the unit that fits.

    >>> duration(2.5), duration(0.0123), duration(4e-7)
    ('2.5 s', '12.3 ms', '0.4 µs')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


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
    return _cut(value, _LONG)


def _cut(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
