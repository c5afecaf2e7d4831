"""Lines of JSON, many at once, are read as each would be alone."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Schema
from tamis.encode.encoder import Encoder
from tamis.encode.lines import json_lines
from tamis.encode.lines.json_lines import LineReader
from tamis.errors import EventError
from tamis.workload import auctions
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type(
        "e",
        {
            "d": "decimal",
            "n": "integer",
            "s": "text",
            "b": "boolean",
            "at": "timestamp",
            "ts": "timestamp*",
            "ds": "decimal*",
            "tags": "text*",
            "x.y": "integer",
            "x.z.w": "text",
            "o": "opaque",
        },
    )
)
GOOD = [
    '{"d": 1.5, "n": 3, "s": "a", "b": true, "at": "2026-01-31T12:00:00Z"}',
    '{"d": 2, "tags": ["x", "y"], "ts": ["2026-01-31", null], "ds": [1, 2.5]}',
    '{"x": {"y": 4, "z": {"w": "deep"}}}',
    '{"tags": [], "n": null, "x": null}',
    '{"s": "}\\n{", "o": "text"}',
    ' {"event_type": "e", "s": "\\u00e9"} ',
    "{}",
]
ODD = [
    '{"n": 5.0}',
    '{"n": 5.5}',
    '{"n": "5"}',
    '{"d": 9007199254740993}',
    '{"ds": [9007199254740993]}',
    '{"d": 1e400}',
    '{"d": NaN}',
    '{"n": 9223372036854775808}',
    '{"at": "yesterday"}',
    '{"ts": ["2026-01-31", "yesterday"]}',
    '{"tags": "one"}',
    '{"tags": ["a", 1]}',
    '{"s": ["a"]}',
    '{"s": ["a", "b"]}',
    '{"zz": 1}',
    '{"zz": null}',
    '{"x.y": 4}',
    '{"x": {"y": 4, "q": 1}}',
    '{"o": {"any": [1, 2]}}',
    '{"o": [1]}',
    '{"s": "a", "s": "b"}',
    '{"s": "\\ud800"}',
    '{"o": {"any": "\\ud800"}}',
    '{"o": "\\ud800"}',
    '{"event_type": ["e"]}',
    '{"event_type": "f"}',
    '{"s": "a"} {"s": "b"}',
    '{"s": "a"}{',
    '{"s": "}',
    '{"x": {}',
    "[]",
    "3",
    "null",
    "",
    "   ",
    "{",
    "}{",
    "no JSON",
    '{"n": ' + "9" * 5000 + "}",
    '{"o": ' + "[" * 100 + "]" * 100 + "}",
]


def alone(line: str | None) -> dict[str, Any] | None:
    """What one line binds, by the rules of an event; None where it is invalid."""
    try:
        return {
            name: values
            for name, values in SCHEMA.event(json.loads(line or "")).values.items()
            if values
        }
    except (EventError, ValueError, RecursionError):
        return None


def bound(row: dict[str, Any]) -> dict[str, Any]:
    """What a row of the columns binds, in the same form."""
    found = {}
    for name, value in row.items():
        values = value if isinstance(value, list) else [value]
        values = [each for each in values if each is not None]
        if values:
            found[name] = tuple(dict.fromkeys(values))
    return found


def same_as_alone(lines: list[str | None], texts: pa.Array | None = None) -> None:
    parsed = LineReader(Encoder(SCHEMA)).parse(pa.array(lines) if texts is None else texts)
    assert parsed.events.num_rows == len(parsed.reasons) == len(lines)
    for line, row, dead in zip(
        lines, parsed.events.to_pylist(), parsed.reasons.to_pylist(), strict=True
    ):
        wanted = alone(line)
        assert (wanted is None) == (dead is not None), (line, dead)
        if wanted is None:
            assert not any(value is not None for value in row.values()), line
            continue
        if "o" in wanted:
            (given,) = wanted["o"]
            written = isinstance(given, str) and given.isprintable()
            wanted["o"] = (given if written else json.dumps(given),)
        assert bound(row) == wanted, line


@pytest.mark.parametrize("line", [*GOOD, *ODD])
def test_one_line(line: str) -> None:
    same_as_alone([line])
    same_as_alone([*GOOD, line, *GOOD])


@pytest.mark.parametrize("listed", [True, False])
def test_lines_without_a_type_are_of_the_default_type(listed: bool) -> None:
    document = {"attributes": {"n": "integer"}, "event_types": {"e": {"n": "optional"}, "f": {}}}
    schema = Schema.from_dict({**document, "default_event_type": "e"})
    lines = ['{"n": 1}', '{"event_type": null, "n": 1}']
    types = [("e",), ("e",)]
    if listed:
        lines += ['{"event_type": [], "n": 1}', '{"event_type": [null]}', '{"event_type": ["f"]}']
        types += [("e",), ("e",), ("f",)]
    else:
        lines, types = [*lines, '{"event_type": "f"}'], [*types, ("f",)]
    for order in (1, -1):
        parsed = LineReader(Encoder(schema)).parse(pa.array(lines[::order]))
        assert [bound(row)["event_type"] for row in parsed.events.to_pylist()] == types[::order]
        assert parsed.reasons.null_count == len(lines)


@pytest.mark.slow
def test_any_mixture_of_lines() -> None:
    rng = np.random.default_rng(0)
    for odds in (0.0, 0.001, 0.05, 0.5):
        few: list[str | None] = [*ODD, None]
        lines = [
            few[int(rng.integers(len(few)))] if rng.random() < odds else GOOD[int(i)]
            for i in rng.integers(len(GOOD), size=6000)
        ]
        same_as_alone(lines)


def test_many_blocks_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a culprit come smaller blocks; no line is lost or read twice."""
    monkeypatch.setattr(json_lines, "_LINES", 100)
    monkeypatch.setattr(json_lines, "_NEXT_LINES", 40)
    lines: list[str | None] = [GOOD[at % len(GOOD)] for at in range(350)]
    same_as_alone(lines)
    for at in (0, 45, 99, 100, 139, 241, 349):
        lines[at] = '{"n": "x"}'
    same_as_alone(lines)


def test_lines_cannot_lean_on_each_other() -> None:
    """As many objects as lines, but not one in each."""
    same_as_alone(['{"s": "a"} {"s": "b"}', "", '{"s": "c"}'])
    same_as_alone(['{"x":', '{"y": 1}}', '{"s": "a"} {"s": "b"}', '{"n": 1} {"n": 2}'])
    same_as_alone(['{"s": "}', '{"}', '{"n": 1} {"n": 2}'])
    same_as_alone(['{"x": {"y": 1}', '{"n": 1}}', '{"n": 1} {"n": 2}'])


def test_bytes_slices_and_large_texts() -> None:
    lines: list[str | None] = [*GOOD, None, "{"]
    same_as_alone(lines, pa.array([None if each is None else each.encode() for each in lines]))
    same_as_alone(lines, pa.array(lines, pa.large_string()))
    same_as_alone(lines[2:7], pa.array(lines)[2:7])
    same_as_alone([], pa.array([], pa.string()))
    broken = LineReader(Encoder(SCHEMA)).parse(pa.array([b'{"s": "\xff"}', b'{"s": "a"}', None]))
    assert broken.reasons.to_pylist() == [
        "not UTF-8: invalid start byte at byte 7",
        None,
        "there is no text",
    ]
    assert broken.events["s"].to_pylist() == [None, "a", None]


def test_events_come_back_from_text() -> None:
    workload = auctions.make(10)
    schema = Schema.from_dict(workload.schema)
    events = workload.events(5000)
    texts = [json.dumps(each, default=datetime.isoformat) for each in events.to_pylist()]
    parsed = LineReader(Encoder(schema)).parse(pa.array(texts))
    assert parsed.reasons.null_count == len(events)
    for name in events.column_names:
        assert parsed.events[name].to_pylist() == events[name].to_pylist(), name
