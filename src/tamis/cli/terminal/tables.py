"""The tables of all commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tamis.cli.terminal.printable import one_line

Cell = str | Text
_Record = TypeVar("_Record")
Columns = Sequence[tuple[str, str, Callable[[_Record], Cell]]]
"""Alignment, heading and cell of each column, for `record_table`."""


def table(
    align: str, headings: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str = ""
) -> RenderableType:
    """A table without lines.

    Args:
        align: a letter for each column: `l` left, `r` right, `w` left and wrapped where the
            terminal is narrow, `s` left and shortened there.
        headings: the titles of the columns; they may have several lines.
        rows: the cells. A row may be shorter than the headings.
        caption: explanations, shown below.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for letter, heading in zip(align, headings, strict=True):
        made.add_column(
            heading,
            justify="right" if letter == "r" else "left",
            no_wrap=letter in "lr",
            overflow="ellipsis" if letter == "s" else "fold",
        )
    for row in rows:
        made.add_row(*map(_cell, align, row))
    return Group(made, Text(caption, "dim")) if caption else made


def record_table(
    columns: Columns[_Record], records: Iterable[_Record], caption: str = "", *, blank: int = 0
) -> RenderableType:
    """A table with a row for each record; the first `blank` columns are blank where they repeat."""
    align, headings, cells = zip(*columns, strict=True)
    rows = ([cell(each) for cell in cells] for each in records)
    return table("".join(align), headings, blank_repeats(rows, blank), caption)


def _cell(letter: str, cell: Cell) -> Text:
    text = Text(one_line(cell)) if isinstance(cell, str) else cell
    if letter == "s":
        text.no_wrap = True
    return text


def blank_repeats(rows: Iterable[Sequence[Cell]], columns: int) -> list[list[Cell]]:
    """Rows in which the first columns are blank where they repeat the row above.

    >>> blank_repeats([("a", "b", "1"), ("a", "b", "2"), ("a", "c", "3")], 2)
    [['a', 'b', '1'], ['', '', '2'], ['a', 'c', '3']]
    """
    found: list[list[Cell]] = []
    before: list[str] = []
    for row in rows:
        head = [str(cell) for cell in row[:columns]]
        found.append([*([""] * columns if head == before else row[:columns]), *row[columns:]])
        before = head
    return found
