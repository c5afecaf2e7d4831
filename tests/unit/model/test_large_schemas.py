"""Large hierarchies and schemas take time in proportion to their size.

The sizes are such that each test takes seconds, and hours if a step were quadratic.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.encode.codes import NameCodec
from tamis.engine import Engine
from tamis.model.named_domains import Hierarchy
from tamis.model.schema import Schema

_NAMES, _ATTRIBUTES = 30_000, 20_000

Parents = Callable[[int], list[str]]
SHAPES: dict[str, Parents] = {
    "tree": lambda i: [f"v{(i - 1) // 10}"],
    "chain": lambda i: [f"v{i - 1}"],
    "upward chain": lambda i: [f"v{i + 1}"] if i < _NAMES - 1 else [],
    "flat": lambda i: ["v0"],
    "dag": lambda i: [f"v{(i - 1) // 10}", f"v{(i - 1) // 11}"],
}


def _used(schema: Schema, condition: str, event: dict[str, Any], folder: Path) -> None:
    """An engine subscribes, matches, is saved, opened and extended."""
    engine = Engine(schema)
    engine.subscribe(condition, id="a")
    assert engine.match(event) == ["a"]
    engine.save(folder / "index")
    again = Engine.open(folder / "index")
    assert again.match(event) == ["a"]
    again.extend(schema.create_attribute("more", "integer"))
    again.subscribe(condition, id="b")
    assert sorted(again.match(event)) == ["a", "b"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hierarchy(shape: str, tmp_path: Path) -> None:
    parents = {f"v{i}": SHAPES[shape](i) for i in range(1, _NAMES)}
    domain = {"kind": "hierarchy", "parents": parents}
    document = {"domains": {"place": domain}, "attributes": {"place": "place"}}
    schema = Schema.from_dict(document)
    (tmp_path / "schema.json").write_text(json.dumps(document))
    assert Schema.load(tmp_path / "schema.json") == schema
    root = f"v{_NAMES - 1}" if shape == "upward chain" else "v0"
    _used(schema, f"place <= {root}", {"place": "v777"}, tmp_path)


def test_many_names_of_a_deep_tree_are_asked_for() -> None:
    """Not all names under each are visited: that would be 10^9 steps."""
    chain = {f"v{i}": [f"v{i - 1}"] for i in range(1, _NAMES)}
    codec = NameCodec(Hierarchy(chain))
    for name in range(_NAMES - 1):
        assert codec.compare("<=", f"v{name}") == ((name, _NAMES),)
        assert codec.compare("<", f"v{name}") == ((name + 1, _NAMES),)
    assert codec.compare("<", f"v{_NAMES - 1}") == ()


def test_many_attributes(tmp_path: Path) -> None:
    document = {"attributes": {f"a{i}": "text" if i % 2 else "integer" for i in range(_ATTRIBUTES)}}
    schema = Schema.from_dict(document)
    for name, text in (("s.json", json.dumps(document)), ("s.yaml", schema.to_yaml())):
        (tmp_path / name).write_text(text)
        assert Schema.load(tmp_path / name) == schema
    event = {f"a{i}": "3" if i % 2 else 3 for i in range(_ATTRIBUTES)}
    _used(schema, f'a{_ATTRIBUTES - 1} = "3" and a0 = 3', event, tmp_path)


def test_many_event_types(tmp_path: Path) -> None:
    types = 200
    each = _ATTRIBUTES // types
    document = {
        "attributes": {f"a{i}": "integer" for i in range(_ATTRIBUTES)},
        "event_types": {
            f"t{at}": {f"a{i}": "optional" for i in range(at * each, (at + 1) * each)}
            for at in range(types)
        },
    }
    last = _ATTRIBUTES - 1
    event = {"event_type": f"t{types - 1}", f"a{last}": 1}
    _used(Schema.from_dict(document), f"a{last} = 1", event, tmp_path)
