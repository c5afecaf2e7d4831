"""What a notification says about its event: everything, some attributes, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tamis.broker.preparation import NAME, checked_text
from tamis.errors import BrokerError

EVENT, NOTHING = "event", "none"
Body = str | tuple[str, ...]
"""The whole event, nothing of it, or some attributes."""
_MOST = 100  # attributes in a body
_FORMS = f"{EVENT}, {NOTHING} or a list of attributes"


def read_body(given: Any) -> Body:
    """A body as a subscriber asks for it; raises `BrokerError` for anything else."""
    if isinstance(given, list | tuple):
        if not all(isinstance(each, str) and each for each in given):
            raise BrokerError(f"the body of notifications is {_FORMS}, by their names")
        if len(given) > _MOST:
            raise BrokerError(f"the body of notifications lists at most {_MOST} attributes")
        for each in given:
            checked_text(each, "an attribute in the body of notifications", NAME)
        return tuple(given)
    if given not in (EVENT, NOTHING):
        raise BrokerError(f"the body of notifications is {_FORMS}")
    return str(given)


def parse_body(written: str) -> Body:
    """A body as a parameter of a URL writes it: a word, or attributes with commas between.

    >>> parse_body("none"), parse_body("price,seller.name")
    ('none', ('price', 'seller.name'))
    """
    return read_body(written if written in (EVENT, NOTHING) else written.split(","))


def shape_event(event: str | None, body: Body) -> str | None:
    """What is shown of an event, which is JSON.

    >>> shape_event('{"price": 4, "title": "oak"}', ("price", "colour"))
    '{"price": 4}'
    """
    if event is None or body == EVENT:
        return event
    if body == NOTHING:
        return None
    return json.dumps(_some(json.loads(event), body), ensure_ascii=False)


def _some(event: Mapping[str, Any], names: str | tuple[str, ...]) -> dict[str, Any]:
    """Some attributes of an event; `a.b` is b in a nested object."""
    found: dict[str, Any] = {}
    for name in names:
        value: Any = event
        if name in event:
            value = event[name]
        else:
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            found[name] = value
    return found
