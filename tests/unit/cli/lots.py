"""Three lots of an auction, and subscriptions to them, as files."""

from __future__ import annotations

import json
from pathlib import Path

SCHEMA = """
attributes: {price: decimal, title: text, sold: boolean, lot: integer, at: timestamp, tags: text}
event_types:
  offer: {price: mandatory, title: optional, sold: optional, lot: optional, at: optional,
          tags: optional multiple}
unknown: ignore
"""
EVENTS = [
    {"price": 3.5, "title": "old oak", "sold": True, "lot": 7, "at": "2026-01-31T12:00:00Z"},
    {"price": 12, "tags": ["oak", "old"]},
    {"price": 4, "title": "a, b", "sold": False},
]
PAIRS = [(0, "cheap"), (0, "sold"), (1, "oak"), (2, "cheap"), (2, "comma")]


def write(folder: Path) -> None:
    (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    (folder / "wanted.csv").write_text(
        'id,condition\ncheap,price < 5\nsold,sold and at < 2026-02-01T00:00:00Z\noak,"tags = oak"\n'
        'comma,"title = ""a, b"""\n',
        encoding="utf-8",
    )
    lines = "\n".join(map(json.dumps, EVENTS))
    (folder / "lots.jsonl").write_text(f"{lines}\n", encoding="utf-8")


def given(world: Path, events: str = "lots.jsonl", wanted: str = "wanted.csv") -> tuple[str, ...]:
    return (*("match", "--schema", str(world / "schema.yaml")),
            *("--subscriptions", str(world / wanted)),
            *("--events", events if events == "-" else str(world / events)))  # fmt: skip


def pairs(text: str) -> list[tuple[int, str]]:
    rows = map(json.loads, text.splitlines())
    return sorted((row["event"], row["subscription"]) for row in rows)
