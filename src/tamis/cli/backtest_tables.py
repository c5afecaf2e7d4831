"""What `tamis spark backtest` shows: conditions, how often they matched and when, and samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli.spark_jobs import rate

if TYPE_CHECKING:
    from tamis.spark.backtest.backtest_job import Backtest

_TOP, _BOTTOM = 10, 5  # conditions that are shown of many
_SPARK, _NARROW = 24, 8  # letters of the line over time
_WIDE = 100  # letters of a terminal in which there is room for the longer one
_CONDITION = 60  # letters of a condition at most
_LEAST = 12  # and at least
_ID = 24
_SAMPLED = 3  # conditions whose samples are shown
_REASONS = 5
_VALUE = 40  # letters of a value
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = (
    ("id", False),
    ("condition", False),
    ("events", True),
    ("share", True),
    ("first", False),
    ("last", False),
    ("over time", False),
)  # and whether they are put to the right


def show(console: Console, found: Backtest) -> None:
    """Print what was found."""
    if found.counts.num_rows:
        console.print(_conditions(found, console.width))
        console.print(Text(_scale(found), "dim"), soft_wrap=True)
    if found.counts.num_rows <= _SAMPLED and found.samples.num_rows:
        console.print()
        console.print("Samples:")
        for line in _samples(found):
            console.print(line, soft_wrap=True)
    console.print()
    _totals(console, found)


def _conditions(found: Backtest, width: int) -> Table:
    matched = np.asarray(found.counts["matched"])
    # The most frequent first; among equals, in their order.
    order = np.argsort(-matched, kind="stable").tolist()
    between = len(order) - _TOP - _BOTTOM
    shown = [*order[:_TOP], *order[-_BOTTOM:]] if between > 0 else order
    bars = _SPARK if width >= _WIDE else _NARROW
    rows = [_row(found, row, bars) for row in shown]
    if between > 0:
        rows.insert(_TOP, ["…", f"{between:,} more", *[""] * (len(_COLUMNS) - 2)])
    # Conditions are shortened where there is not room for all, and nothing else is.
    widths = [
        max(len(name), *(len(row[at]) for row in rows)) for at, (name, _) in enumerate(_COLUMNS)
    ]
    room = max(_LEAST, width - sum(widths) + widths[1] - 2 * (len(widths) - 1))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, right in _COLUMNS:
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for id, condition, *rest in rows:
        table.add_row(*map(Text, (id, shortened(condition, room), *rest)))
    return table


def _row(found: Backtest, row: int, bars: int) -> list[str]:
    told = found.counts.slice(row, 1).to_pylist()[0]
    return [
        shortened(str(told["subscription"]), _ID),
        shortened(told["condition"] or "", _CONDITION),
        f"{told['matched']:,}",
        _percent(told["share"]),
        _when(found, "first", row),
        _when(found, "last", row),
        sparkline(found.grid[row, : found.axis.buckets], bars),
    ]


def _when(found: Backtest, name: str, row: int) -> str:
    value = found.counts[name][row]
    if not value.is_valid:
        return "–"
    return found.axis.written(value.value if hasattr(value, "value") else value.as_py())


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 0.9995 else "100 %" if share == 1 else ">99.9 %"


def sparkline(counts: NDArray[Any], width: int = _SPARK) -> str:
    """Counts as a line of bars, the highest of which is the most; a blank is none at all.

    >>> sparkline(np.array([0, 1, 2, 4, 8]))
    ' ▁▂▄█'
    """
    together = -(-len(counts) // width)
    if together > 1:  # the mean of as many, so that the last is not lower for being few
        starts = np.arange(0, len(counts), together)
        counts = np.add.reduceat(counts, starts) / np.diff(np.append(starts, len(counts)))
    most = counts.max(initial=0)
    if not most:
        return " " * len(counts)
    heights = np.where(counts > 0, np.maximum(1, np.rint(counts * 8 / most)), 0).astype(int)
    return "".join(_BARS[height] for height in heights.tolist())


def _scale(found: Backtest) -> str:
    axis = found.axis
    what = "numbers of events" if found.time is None else found.time
    step = f", by {axis.step}" if axis.step else ""
    return (
        f"over time: {what} from {axis.written(axis.edges[0])} to "
        f"{axis.written(axis.edges[-1])}{step}"
    )


def _samples(found: Backtest) -> list[Text]:
    lines = []
    for row in found.samples.to_pylist():
        id, number = row.pop("subscription"), row.pop("sequence")
        rest = ", ".join(
            f"{name} {shortened(str(value), _VALUE)}"
            for name, value in row.items()
            if value is not None
        )
        lines.append(Text(f"  {id}: event {number:,}: {rest}"))
    return lines


def _totals(console: Console, found: Backtest) -> None:
    files = f" of {found.files:,} files" if found.files else ""
    console.print(
        f"{found.events:,} events{files} in {found.seconds:.1f} s, "
        f"{rate(found.events, found.seconds)}"
    )
    console.print(
        f"{found.pairs:,} pairs; {found.matched:,} events matched, "
        f"{found.events - found.matched - found.dead:,} did not, {found.dead:,} are dead"
    )
    never = int(np.count_nonzero(np.asarray(found.counts["matched"]) == 0))
    if found.counts.num_rows > 1:
        console.print(f"{never:,} of {found.counts.num_rows:,} conditions never matched")
    without = int(np.asarray(found.totals["events"])[found.axis.buckets :].sum())
    if without:
        console.print(f"{without:,} events have no {found.time}, and no place over time")
    for row in found.reasons.slice(0, _REASONS).to_pylist():
        console.print(f"  dead: {row['events']:,} × {row['reason']}", soft_wrap=True)
    if found.reasons.num_rows > _REASONS:
        console.print(f"  and for {found.reasons.num_rows - _REASONS:,} reasons more")


def shortened(text: str, most: int) -> str:
    """A text on one line, of at most so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
