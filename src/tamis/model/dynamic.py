"""The domain `dynamic`: a number, text, boolean or null, as the event has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from tamis.model.condition import MEMBERSHIP, OF_KIND, ORDER, TEXT
from tamis.model.domain import Domain, RefusalError, Text, finite_number, show

NULL, BOOLEAN, NUMBER, TEXTUAL, OBJECT = "null", "boolean", "number", "text", "object"
KINDS = (NULL, BOOLEAN, NUMBER, TEXTUAL, OBJECT)
_TEXT = Text()


def kind_of_value(value: object) -> str:
    """The kind of a value. Values of two kinds do not compare; an object compares with nothing."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    return TEXTUAL if isinstance(value, str) else OBJECT


class Dynamic(Domain):
    """Any JSON value. A comparison holds only between values of one kind.

    null is a value of its own. An object is bound, but no comparison holds for it. A time is the
    text that JSON would have: ISO 8601 in UTC.
    """

    kind = "dynamic"
    comparators = (*MEMBERSHIP, *ORDER, *TEXT, OF_KIND)

    def value(self, given: object) -> Any:
        kind = type(given)
        if kind is float or kind is int:  # nearly all values are these or text
            return finite_number(given, "a number") + 0  # -0.0 + 0 is 0.0
        if isinstance(given, str):
            return _TEXT.value(given)
        if given is None or isinstance(given, bool | Mapping | bytes):
            return given
        if isinstance(given, datetime):
            if given != given:  # NaT of pandas
                raise RefusalError("NaT is a missing value; leave the attribute out")
            moment = given if given.tzinfo else given.replace(tzinfo=UTC)
            return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        if isinstance(given, date):
            return given.isoformat()
        if type(given).__module__ == "numpy" and type(given).__name__ in ("bool_", "bool"):
            return bool(given)
        if not isinstance(given, int | float) and not _is_number(given):
            raise RefusalError(
                f"{show(given)} is {type(given).__name__}, expected a value of JSON: a number, "
                "text, boolean, null or an object"
            )
        return finite_number(given, "a number") + 0

    def constant(self, given: object) -> Any:
        """A number, text or boolean: `is null` asks for null, and nothing for an object."""
        found = self.value(given)
        if kind_of_value(found) in (NULL, OBJECT):
            raise RefusalError("expected a number, text, true or false; for null, write: is null")
        return found


def _is_number(given: object) -> bool:
    """Whether a value is a number of another library."""
    try:
        finite_number(given, "a number")
    except RefusalError:
        return hasattr(given, "is_finite") or hasattr(given, "__index__")
    return True


def distinct(values: list[Any]) -> tuple[Any, ...]:
    """Values without repetitions: 1 equals 1.0, but true is not a number. Objects all stay."""
    found: dict[object, Any] = {}
    for value in values:
        kind = kind_of_value(value)
        found.setdefault(id(value) if kind == OBJECT else (kind, value), value)
    return tuple(found.values())
