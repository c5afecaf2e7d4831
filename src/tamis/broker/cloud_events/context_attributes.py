"""The context attributes of a CloudEvent: their rules, by CloudEvents 1.0.2, section "Context"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tamis.errors import EventError

SPECVERSION = "1.0"
JSON = "application/json"
REQUIRED = ("id", "source", "type")
_TEXTS = ("specversion", "subject", "dataschema", "datacontenttype", "time")
_KNOWN = frozenset({*REQUIRED, *_TEXTS})
DATA = "data"
"""In an envelope: the members that were added to the data, or null if there was no data. No context
attribute has this name."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"[a-z0-9]+")
_JSON_TYPE = re.compile(r"[\w.!#$&^*-]+/(?:[\w.!#$&^*-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_MICROSECOND = timedelta(microseconds=1)


class ContentTypeError(EventError):
    """Data in a form that is not read here."""


def check_attributes(attributes: Mapping[str, Any]) -> None:
    """Raise an `EventError` that names the first attribute which breaks a rule."""
    version = attributes.get("specversion")
    if version != SPECVERSION:
        given = "it is missing" if version is None else f"got {version!r}"
        raise _wrong("specversion", f"this service reads CloudEvents {SPECVERSION}; {given}")
    for name in REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise _wrong(name, "every CloudEvent has it, as text that is not empty")
    check_envelope(attributes)


def check_envelope(attributes: Mapping[str, Any]) -> None:
    """Raise an `EventError` for a name or a value that no context attribute has."""
    for name, value in attributes.items():
        if name in _KNOWN:
            if not isinstance(value, str) or not value:
                raise _wrong(name, "expected text that is not empty, or no such attribute")
        elif not _NAME.fullmatch(name) or name == DATA:
            raise _wrong(name, "names of context attributes have the letters a-z and digits only")
        elif not isinstance(value, str | int) or (
            isinstance(value, int) and not -(2**31) <= value < 2**31
        ):
            raise _wrong(name, f"expected text, a boolean or an integer of 32 bits, got {value!r}")


def check_content_type(given: str | None) -> None:
    """Refuse data that is not JSON."""
    if given is not None and not _JSON_TYPE.fullmatch(given.strip()):
        raise ContentTypeError(
            f"the data of a CloudEvent is a JSON object here, so datacontenttype is {JSON} or ends "
            f"in +json, not {given!r}; put other data in an attribute of that object",
            attribute="datacontenttype",
        )


def microseconds_of(time: str) -> int:
    """The attribute `time`, in microseconds since 1970."""
    try:
        found = msgspec.convert(time, datetime)
    except msgspec.ValidationError:
        found = None
    if found is None or found.tzinfo is None:
        raise _wrong("time", f"expected a time such as 2030-01-02T10:00:00Z, got {time!r}")
    return (found - EPOCH) // _MICROSECOND


def written_time(since_epoch: timedelta) -> str:
    """A time as text: UTC, with a fraction only if there is one."""
    try:
        return (EPOCH + since_epoch).isoformat().removesuffix("+00:00") + "Z"
    except OverflowError:  # microseconds reach beyond the year 9999
        raise _wrong("time", "expected a year from 1 to 9999, in UTC") from None


def _wrong(name: str, why: str) -> EventError:
    return EventError(f"the context attribute {name!r}: {why}", attribute=name)
