"""The public conformance suite of CESQL: each case as a filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tamis.errors import ConditionError
from tamis.language import read
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies

FOLDER = Path(__file__).parents[1] / "data" / "cesql" / "tck"
VALID = {"specversion": "1.0", "id": "e1", "source": "localhost", "type": "offer"}
OPEN = Schema.open()
KINDS = {str: "text", int: "integer", bool: "boolean"}
REFUSED = ("int(hop) < int(ttl) and int(hop) < 1000", "INT(hop) < INT(ttl) AND INT(hop) < 1000",
           "hop < ttl")  # fmt: skip
"""Two texts are compared as integers."""


class Loader(yaml.SafeLoader):
    """Reads times as text."""


Loader.yaml_implicit_resolvers = {
    first: [each for each in found if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.load(path.read_text(), Loader)["tests"]
    ]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    return str(value).upper()


def passes(expression: str, event: dict[str, Any]) -> bool | None:
    """Whether an event in structured mode passes, and one in the service too; None if refused."""
    try:
        condition = read(expression, OPEN, language="cesql")
    except ConditionError:
        return passes_typed(expression, event)
    verdict = satisfies(condition, event, OPEN)
    assert passes_typed(expression, event) in (verdict, None)
    context = {name: value for name, value in event.items() if name != "specversion"}
    assert verdict == satisfies(condition, {"ce": context}, OPEN)
    return verdict


def passes_typed(expression: str, event: dict[str, Any]) -> bool | None:
    """Whether an event passes under a schema with the types that it has."""
    kinds = {name: KINDS[type(value)] for name, value in event.items()}
    schema = Schema.from_dict({"attributes": {"subject": "text", "missing": "text", **kinds}})
    try:
        return satisfies(read(expression, schema, language="cesql"), event, schema)
    except ConditionError:
        return None


@pytest.mark.parametrize("case", cases())
def test_case(case: dict[str, Any]) -> None:
    expression = str(case["expression"])  # YAML reads TRUE and 5
    event = case.get("event", {**VALID, **case.get("eventOverrides", {})})
    if expression in REFUSED:
        assert passes(expression, event) is None
        numbers = {name: int(value) if name in ("hop", "ttl") else value
                   for name, value in event.items()}  # fmt: skip
        assert passes(expression, numbers) == case["result"]
    elif "error" in case:
        assert not passes(expression, event)
        assert not passes(f"NOT ({expression})", event)
        if "result" in case:
            assert not passes(f"({expression}) = {literal(case['result'])}", event)
    elif isinstance(case["result"], bool):
        assert bool(passes(expression, event)) == case["result"]
        assert bool(passes(f"NOT ({expression})", event)) != case["result"]
    else:
        assert passes(f"({expression}) = {literal(case['result'])}", event) is True
        assert not passes(f"({expression}) != {literal(case['result'])}", event)
