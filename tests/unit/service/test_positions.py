"""Positions of events, for the map."""

from __future__ import annotations

import pytest

from tamis.service.console.positions import position_of


@pytest.mark.parametrize(
    "position",
    [
        '{"lat": 40.7, "lon": -73.9}',
        "[-73.9, 40.7]",
        "[-73.9, 40.7, 120]",
        '{"type": "Point", "coordinates": [-73.9, 40.7]}',
    ],
)
def test_all_forms_are_read(position: str) -> None:
    assert position_of(f'{{"title": "é", "position": {position}}}') == [-73.9, 40.7]


@pytest.mark.parametrize(
    "event",
    [
        "{}",
        '{"position": null}',
        '{"position": "here"}',
        '{"position": {"lat": 40.7}}',
        '{"position": [1]}',
        '{"position": {"coordinates": 7}}',
        '{"position": [[1, 2], [3, 4]]}',
        "[1]",
        "{",
        '{"position": ["\\ud800", 1]}',
        '{"position": ["nan", 1]}',
        '{"position": [1, "inf"]}',
        f'{{"position": [1{"0" * 400}, 1]}}',
        '{"position": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_anything_else_has_no_place(event: str) -> None:
    assert position_of(event) is None
