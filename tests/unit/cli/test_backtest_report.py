"""Samples of a back-test, as a table that fits the terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from tamis.cli.reports.backtest import _samples

ROWS = [
    {"subscription": "cheap", "sequence": 1234, "price": 5.0, "title": "an old chair", "at": None},
    {"subscription": "cheap", "sequence": 7, "price": 2.5, "title": "x" * 200, "at": None},
]


def _printed(width: int, **more: Any) -> list[str]:
    rows = [{**row, **more} for row in ROWS]
    found: Any = SimpleNamespace(samples=pa.Table.from_pylist(rows))
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None)
    console.print(_samples(found, width))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_samples_fit_the_terminal(width: int) -> None:
    lines = _printed(width, **{f"column{number}": "v" * 9 for number in range(20)})
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:3] == ["id", "event", "price"]
    assert lines[1].split()[:3] == ["cheap", "1,234", "5.0"]
    assert lines[2].split()[:2] == ["7", "2.5"], "an id once"
    assert lines[3].startswith("also: ")
    assert "at" not in lines[0].split(), "no sample has it"


def test_all_columns_where_there_is_room() -> None:
    lines = _printed(120)
    assert lines[0].split() == ["id", "event", "price", "title"]
    assert lines[2].endswith("…")
    assert len(lines) == 3
