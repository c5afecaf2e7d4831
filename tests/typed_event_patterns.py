"""Random event patterns and events of a typed schema, in which every test fits its attribute.

Left out is null, which is the same as no value in a typed schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tamis import Schema

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "t": "text",
            "tags": "text",
            "n": "integer",
            "d": "decimal",
            "f": "boolean",
            "e": {"kind": "enumerated", "values": ["a", "b", "c"]},
            "o.x": "text",
            "o.y": "integer",
            "o.list": {"kind": "structs", "attributes": {"t": "text", "n": "integer"}},
            "items": {
                "kind": "structs",
                "attributes": {
                    "t": "text",
                    "n": "integer",
                    "subs": {"kind": "structs", "attributes": {"t": "text", "n": "integer"}},
                },
            },
        },
        "event_types": {
            "event": {
                **dict.fromkeys(("t", "n", "d", "f", "e", "o.x", "o.y", "o.list", "items"),
                                "optional"),
                "tags": "optional multiple",
            }
        },
    }
)  # fmt: skip
_TEXTS = ("", "a", "ab", "b", "A", "é")
_NUMBERS = (0, 1, 2, 5, -1)


def random_typed_event(draw: Random) -> dict[str, Any]:
    """An event of the schema."""

    def some(choices: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        return {name: make() for name, make in choices.items() if draw.random() < 0.6}

    def text() -> str:
        return draw.choice(_TEXTS)

    def number() -> int:
        return draw.choice(_NUMBERS)

    def element() -> dict[str, Any]:
        return some({"t": text, "n": number})

    def listed(make: Callable[[], Any], least: int = 0) -> list[Any]:
        return [make() for _ in range(draw.randint(least, 3))]

    return some(
        {
            "t": text,
            "tags": lambda: listed(text, 1),
            "n": number,
            "d": lambda: draw.choice((0.5, 1.0, 2, 5)),
            "f": lambda: draw.random() < 0.5,
            "e": lambda: draw.choice("abc"),
            "o": lambda: some({"x": text, "y": number, "list": lambda: listed(element)}),
            "items": lambda: listed(lambda: element() | some({"subs": lambda: listed(element)})),
        }
    )


def random_typed_pattern(draw: Random) -> str:
    """A pattern that the schema takes."""

    def text_test() -> Any:
        text = draw.choice(_TEXTS)
        return draw.choice(
            (
                text,
                {"prefix": text},
                {"suffix": text},
                {"wildcard": draw.choice(("*", "a*", "*b", "a*b", ""))},
                {"anything-but": draw.choice((text, [text, "a"]))},
                {"anything-but": {draw.choice(("prefix", "suffix")): text or "a"}},
                *exists,
            )
        )

    def number_test() -> Any:
        number = draw.choice(_NUMBERS)
        signs = draw.choice((">", ">=")), draw.choice(("<", "<="))
        return draw.choice(
            (
                number,
                {"numeric": [draw.choice(("=", *signs)), number]},
                {"numeric": [signs[0], number, signs[1], number + 2]},
                {"anything-but": draw.choice((number, [number, 1]))},
                *exists,
            )
        )

    def name_test() -> Any:
        return draw.choice(("a", "b", {"anything-but": ["a", "b"]}, *exists))

    def flag_test() -> Any:
        return draw.choice((True, False, *exists))

    def tests(one: Callable[[], Any]) -> list[Any]:
        found = [one() for _ in range(draw.choice((1, 1, 1, 2)))]
        # event-ruler confuses these with other tests of the same field.
        written = json.dumps(found)
        return found[:1] if "anything-but" in written or "exists" in written else found

    def fields(of: Mapping[str, Any], most: int) -> dict[str, Any]:
        names = draw.sample([*of], draw.randint(1, min(most, len(of))))
        return {
            name: fields(of[name], 2) if isinstance(of[name], dict) else tests(of[name])
            for name in names
        }

    exists = ({"exists": True}, {"exists": False})
    element = {"t": text_test, "n": number_test}
    shape = {
        "t": text_test,
        "tags": text_test,
        "n": number_test,
        "d": number_test,
        "f": flag_test,
        "e": name_test,
        "o": {"x": text_test, "y": number_test, "list": element},
        "items": {**element, "subs": element},
    }
    found = fields(shape, 3)
    if draw.random() < 0.2:
        found["$or"] = [fields(shape, 2) for _ in range(2)]
    return json.dumps(found)
