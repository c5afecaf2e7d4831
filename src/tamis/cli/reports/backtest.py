"""What `tamis spark backtest` prints: conditions, their matches over time, and samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.text import Text

from tamis.cli.terminal.numbers import percent, rate, shortened
from tamis.cli.terminal.printable import one_line
from tamis.cli.terminal.tables import Cell, blank_repeats, table
from tamis.errors import counted

if TYPE_CHECKING:
    from tamis.spark.backtest.backtest_job import Backtest

_TOP, _BOTTOM = 10, 5  # conditions that are shown of many
_BARS, _FEW_BARS = 24, 8  # of a sparkline
_WIDE = 100  # columns of a terminal that shows the longer sparkline
_CONDITION = 60  # letters of a condition
_ID = 24  # letters of an id
_SAMPLED = 3  # conditions whose samples are shown
_REASONS = 5
_VALUE = 40  # letters of a value
_SAMPLE_KEYS = ("subscription", "sequence")
_SAMPLE_HEADINGS = ("id", "event")
_GAP = 2  # between columns
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEADINGS = ("id", "condition", "events", "share", "first", "last", "over time")


def show(console: Console, found: Backtest) -> None:
    """Print the result of a back-test."""
    if found.counts.num_rows:
        console.print(_conditions(found, console.width))
        console.print(Text(_time_scale(found), "dim"), soft_wrap=True)
    if found.counts.num_rows <= _SAMPLED and found.samples.num_rows:
        console.print()
        console.print("Samples:")
        console.print(_samples(found, console.width))
    console.print()
    _totals(console, found)


def _conditions(found: Backtest, width: int) -> RenderableType:
    bars = _BARS if width >= _WIDE else _FEW_BARS
    return table("lsrrlll", _HEADINGS, _condition_rows(found, bars))


def _condition_rows(found: Backtest, bars: int) -> Iterator[Sequence[Cell]]:
    """The most frequent conditions first; those that match equally often keep their order."""
    order = np.argsort(-np.asarray(found.counts["matched"]), kind="stable").tolist()
    between = len(order) - _TOP - _BOTTOM
    for place, row in enumerate(order):
        if between > 0 and _TOP <= place < _TOP + between:
            if place == _TOP:
                yield "…", f"{between:,} more"
            continue
        counted = found.counts.slice(row, 1).to_pylist()[0]
        yield (
            shortened(str(counted["subscription"]), _ID),
            shortened(counted["condition"] or "", _CONDITION),
            f"{counted['matched']:,}",
            percent(counted["share"]),
            _when(found, "first", row),
            _when(found, "last", row),
            sparkline(found.grid[row, : found.axis.buckets], bars),
        )


def _when(found: Backtest, name: str, row: int) -> str:
    value = found.counts[name][row]
    if not value.is_valid:
        return "–"
    return found.axis.written(value.value if hasattr(value, "value") else value.as_py())


def sparkline(counts: NDArray[Any], width: int = _BARS) -> str:
    """Counts as a line of bars. The highest bar is the largest count; a blank is zero.

    >>> sparkline(np.array([0, 1, 2, 4, 8]))
    ' ▁▂▄█'
    """
    together = -(-len(counts) // width)
    if together > 1:  # means: the last bar may stand for fewer counts
        starts = np.arange(0, len(counts), together)
        counts = np.add.reduceat(counts, starts) / np.diff(np.append(starts, len(counts)))
    most = counts.max(initial=0)
    if not most:
        return " " * len(counts)
    heights = np.where(counts > 0, np.maximum(1, np.rint(counts * 8 / most)), 0).astype(int)
    return "".join(_BLOCKS[height] for height in heights.tolist())


def _time_scale(found: Backtest) -> str:
    axis = found.axis
    what = "numbers of events" if found.time is None else found.time
    step = f", by {axis.step}" if axis.step else ""
    return (
        f"over time: {what} from {axis.written(axis.edges[0])} to "
        f"{axis.written(axis.edges[-1])}{step}"
    )


def _samples(found: Backtest, width: int) -> RenderableType:
    """A table of the samples, with the columns that fit; a line says which do not."""
    rows = found.samples.to_pylist()
    names = [
        name
        for name in found.samples.column_names
        if name not in _SAMPLE_KEYS and any(row[name] is not None for row in rows)
    ]
    cells = {name: [_sampled(row[name]) for row in rows] for name in names}
    keys = [(str(row["subscription"]), f"{row['sequence']:,}") for row in rows]
    used = sum(
        max(map(len, (heading, *(key[at] for key in keys)))) + _GAP
        for at, heading in enumerate(_SAMPLE_HEADINGS)
    )
    shown: list[str] = []
    for name in names:
        used += max(map(len, (one_line(name), *cells[name]))) + _GAP
        if used - _GAP > width and shown:
            break
        shown.append(name)
    left = names[len(shown) :]
    caption = f"also: {', '.join(left)}; --columns chooses" if left else ""
    made = ([*key, *(cells[name][at] for name in shown)] for at, key in enumerate(keys))
    align = "lr" + "s" * len(shown)
    headings = [*_SAMPLE_HEADINGS, *map(one_line, shown)]
    return table(align, headings, blank_repeats(made, 1), shortened(caption, max(20, width)))


def _sampled(value: Any) -> str:
    return "" if value is None else shortened(one_line(str(value)), _VALUE)


def _totals(console: Console, found: Backtest) -> None:
    files = f" of {counted(found.files, 'file')}" if found.files else ""
    console.print(
        f"{counted(found.events, 'event')}{files} in {found.seconds:.1f} s, "
        f"{rate(found.events, found.seconds)}"
    )
    console.print(
        f"{counted(found.pairs, 'pair')}; {counted(found.matched, 'event')} matched, "
        f"{found.events - found.matched - found.dead:,} did not, "
        f"{counted(found.dead, 'is', 'are')} dead"
    )
    never = int(np.count_nonzero(np.asarray(found.counts["matched"]) == 0))
    if found.counts.num_rows > 1:
        console.print(f"{never:,} of {found.counts.num_rows:,} conditions never matched")
    without = int(np.asarray(found.totals["events"])[found.axis.buckets :].sum())
    if without:
        has = counted(
            without, f"event has no {found.time} and is", f"events have no {found.time} and are"
        )
        console.print(f"{has} not shown over time")
    for row in found.reasons.slice(0, _REASONS).to_pylist():
        console.print(f"  dead: {row['events']:,} × {row['reason']}", soft_wrap=True)
    if found.reasons.num_rows > _REASONS:
        console.print(f"  and {counted(found.reasons.num_rows - _REASONS, 'more reason')}")
