"""Domains: the values that an attribute may have, and its comparators.

A domain converts JSON values and Python objects to one normal form, or refuses them with a reason.
It knows nothing about codes.
"""

from __future__ import annotations

import operator
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal as PythonDecimal
from typing import Any, ClassVar, NoReturn

from tamis.errors import SchemaError, TamisError
from tamis.model.condition import MEMBERSHIP, ORDER, TEXT

INT_LOW, INT_HIGH = -(2**63), 2**63 - 1
_INFINITY = float("inf")
TEXT_LIMIT = 1 << 20  # longest text value, in bytes of UTF-8; use `opaque` for longer ones
NAME_LIMIT = 256  # characters in the name of an attribute, a domain or an event type
DEPTH_LIMIT = 64  # nesting of an opaque JSON value
_EXPECTED = 'is not an ISO 8601 timestamp such as "2026-01-31T12:00:00Z"'


class RefusalError(TamisError):
    """Why a value is not in a domain. Callers add the place."""


_shown = reprlib.Repr()  # shortens long and deep values; repr of untrusted ones may not end
_shown.maxstring = _shown.maxother = _shown.maxlong = 60
_shown.maxlevel = 2


def show(value: object) -> str:
    """A value as errors show it, shortened."""
    try:
        return _shown.repr(value)
    except ValueError:  # Python refuses to print very long integers
        return f"a number of {value.bit_length():,} bits" if isinstance(value, int) else "a value"


def noun(value: object) -> str:
    """The type of a value, in terms of JSON if it has one."""
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (int, "a number"),
        (float, "a number"),
        (str, "text"),
        (Mapping, "an object"),
        (list, "a list"),
        (tuple, "a list"),
        (bytes, "bytes"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)


def refuse(value: object, why: str) -> NoReturn:
    """Raise a `RefusalError` that shows the value, shortened."""
    raise RefusalError(f"{show(value)} {why}")


class Domain(ABC):
    """A set of values with its `comparators`."""

    kind: ClassVar[str]
    comparators: tuple[str, ...] = MEMBERSHIP
    hashable: ClassVar[bool] = True  # whether values can be compared as those of a set
    of_structs: ClassVar[bool] = False  # whether values are elements with attributes of their own

    @abstractmethod
    def value(self, given: object) -> Any:
        """The normal form of a value; raises a `RefusalError` if it is not in the domain."""

    def constant(self, given: object) -> Any:
        """The normal form of a constant in a condition; wider than `value` for numbers."""
        return self.value(given)

    def to_dict(self) -> str | dict[str, Any]:
        """The document form: just the kind, if there is nothing else to say."""
        return self.kind

    def under(self, unknown: str) -> Domain:
        """The domain in a schema with this rule for unknown attributes."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def describe(self) -> str:
        """One line for a summary."""
        return self.kind


def finite_number(given: object, wanted: str) -> int | float:
    """An int or a finite float; handles look-alikes such as bool and NumPy scalars."""
    if (type(given) is int and INT_LOW <= given <= INT_HIGH) or (
        type(given) is float and -_INFINITY < given < _INFINITY
    ):
        return given  # nearly all values
    if isinstance(given, bool) or type(given).__name__ in ("bool_", "bool"):
        refuse(given, f"is a boolean, expected {wanted}")
    if isinstance(given, str):
        refuse(given, f"is text, expected {wanted}")
    if isinstance(given, PythonDecimal):
        if not given.is_finite():
            refuse(given, "is not a finite number")
        # A whole number stays exact; the exponent bounds int() of an untrusted 1E+999999.
        even = given.adjusted() < 20 and given == given.to_integral_value()
        given = int(given) if even else float(given)
    if isinstance(given, float):
        if given != given or given in (_INFINITY, -_INFINITY):
            refuse(given, "is not a finite number")
        return float(given)
    try:
        whole = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        # NumPy's narrower floats are not Python floats, but convert exactly.
        if type(given).__module__ == "numpy" and type(given).__name__.startswith("float"):
            return finite_number(float(given), wanted)  # type: ignore[arg-type]
        refuse(given, f"is {noun(given)}, expected {wanted}")
    if not INT_LOW <= whole <= INT_HIGH:
        refuse(whole, "is outside the 64-bit integers (-2^63 to 2^63 - 1)")
    return whole


def refused_element(domain: Domain, given: Collection[object]) -> RefusalError:
    """Why a list is refused, of which one element is not in the domain: which one, and why."""
    for number, item in enumerate(given, 1):
        try:
            domain.value(item)
        except RefusalError as why:
            if item is not None:  # null is absent
                ordered = not isinstance(given, set | frozenset)
                return RefusalError(f"element {number}: {why}") if ordered else why
    raise AssertionError("all elements are in the domain")


class Integer(Domain):
    """Whole numbers of 64 bits, optionally within `low..high`."""

    kind = "integer"
    comparators = (*MEMBERSHIP, *ORDER)

    def __init__(self, low: int | None = None, high: int | None = None) -> None:
        for name, bound in (("low", low), ("high", high)):
            whole = isinstance(bound, int) and not isinstance(bound, bool)
            if bound is not None and not (whole and INT_LOW <= bound <= INT_HIGH):
                raise SchemaError(f"integer domain: {name} must be a 64-bit integer, got {bound!r}")
        if low is not None and high is not None and low > high:
            raise SchemaError(f"integer domain: low {low} is above high {high}")
        self.low, self.high = low, high

    def value(self, given: object) -> int:
        number = finite_number(given, "an integer")
        if isinstance(number, float):
            if not number.is_integer():
                refuse(given, "is not a whole number")
            number = int(number)
            if not INT_LOW <= number <= INT_HIGH:
                refuse(given, "is outside the 64-bit integers (-2^63 to 2^63 - 1)")
        if self.low is not None and number < self.low:
            refuse(given, f"is below the domain's low, {self.low}")
        if self.high is not None and number > self.high:
            refuse(given, f"is above the domain's high, {self.high}")
        return number

    def constant(self, given: object) -> int | float:
        """Any number: `quantity < 1.5` is meaningful over integers."""
        return finite_number(given, "a number")

    def to_dict(self) -> str | dict[str, Any]:
        bounds = {"low": self.low, "high": self.high}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"kind": self.kind, **given} if given else self.kind

    def describe(self) -> str:
        if self.low is None and self.high is None:
            return "integer"
        low = "" if self.low is None else str(self.low)
        high = "" if self.high is None else str(self.high)
        return f"integer {low}..{high}"


class Decimal(Domain):
    """IEEE doubles, finite; -0.0 is 0.0.

    A whole number without an exact double (2^53 + 1) is refused, not rounded.
    """

    kind = "decimal"
    comparators = (*MEMBERSHIP, *ORDER)

    def value(self, given: object) -> float:
        number = finite_number(given, "a number")
        real = float(number)
        if isinstance(number, int) and int(real) != number:
            refuse(given, f"has no exact double; the nearest is {real!r}")
        return real + 0.0  # -0.0 + 0.0 is 0.0


class Text(Domain):
    """Strings of code points, compared code point by code point."""

    kind = "text"
    comparators = (*MEMBERSHIP, *ORDER, *TEXT)

    def value(self, given: object) -> str:
        if not isinstance(given, str):
            refuse(given, f"is {noun(given)}, expected text")
        try:
            size = len(given) if given.isascii() else len(given.encode())
        except UnicodeEncodeError:
            refuse(given, "contains a lone surrogate, which is not text")
        if size > TEXT_LIMIT:
            refuse(given, f"is longer than {TEXT_LIMIT} bytes; declare large content as opaque")
        return str(given)


class Boolean(Domain):
    """true and false."""

    kind = "boolean"

    def value(self, given: object) -> bool:
        if isinstance(given, bool):
            return given
        if type(given).__module__ == "numpy" and type(given).__name__ in ("bool_", "bool"):
            return bool(given)
        refuse(given, "is not true or false")


class Timestamp(Domain):
    """Points in time, UTC, to the microsecond. Without an offset, a time is UTC."""

    kind = "timestamp"
    comparators = (*MEMBERSHIP, *ORDER)

    def value(self, given: object) -> datetime:
        if type(given).__name__ == "NaTType":
            refuse(given, "is a missing time; leave the attribute out, or pass missing='absent'")
        if getattr(given, "nanosecond", 0):  # pandas has nanoseconds
            refuse(given, "is finer than a microsecond")
        if isinstance(given, date) and not isinstance(given, datetime):
            return datetime(given.year, given.month, given.day, tzinfo=UTC)
        if isinstance(given, datetime):
            moment = given if given.tzinfo else given.replace(tzinfo=UTC)
            try:
                return moment.astimezone(UTC)
            except OverflowError:
                refuse(given, "falls outside the years 1 to 9999 in UTC")
        if isinstance(given, str):
            moment_or_why = parse_timestamp(given)
            if isinstance(moment_or_why, str):
                refuse(given, moment_or_why)
            return moment_or_why
        refuse(given, 'is not a timestamp, expected ISO 8601 such as "2026-01-31T12:00:00Z"')


class Opaque(Domain):
    """Bytes or any JSON value, which only operators read."""

    kind = "opaque"
    comparators = ("exists", "missing")
    hashable = False

    def value(self, given: object) -> object:
        if isinstance(given, (bytes, bytearray, memoryview)):
            return bytes(given)
        _check_json(given)
        return given


def _check_json(given: object) -> None:
    """Refuse what JSON cannot express. Not recursive: the value may be untrusted."""
    stack: list[tuple[object, int]] = [(given, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > DEPTH_LIMIT:
            raise RefusalError(f"a value nested more than {DEPTH_LIMIT} levels deep")
        if isinstance(item, Mapping):
            for key in item:
                if not isinstance(key, str):
                    refuse(key, "is a key of a JSON object, expected text")
            stack.extend((below, depth + 1) for below in item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend((below, depth + 1) for below in item)
        elif isinstance(item, float):
            finite_number(item, "a number")
        elif item is not None and not isinstance(item, (bool, int, str)):
            refuse(item, f"is {noun(item)}, expected bytes or JSON")


_FORM = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,](?P<fraction>\d+))?)?(?:Z|z|[+-]\d{2}:?\d{2})?)?"
)


def parse_timestamp(text: str) -> datetime | str:
    """The time in UTC, or the reason for a refusal, which follows the text in a message."""
    form = _FORM.fullmatch(text)
    if form is None or not text.isascii():
        return _EXPECTED
    fraction = form["fraction"] or ""
    if len(fraction) > 6:
        if fraction[6:].strip("0"):
            return "is finer than a microsecond"
        # fromisoformat would truncate it silently; here the rest is zeros
        text = text.replace(fraction, fraction[:6])
    try:
        moment = datetime.fromisoformat(text.upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError as why:
        return f"is not a timestamp: {why}"
    except OverflowError:
        return "falls outside the years 1 to 9999 in UTC"


def domains_under(
    unknown: str, domains: Mapping[str, Domain], attributes: Mapping[str, Domain]
) -> tuple[dict[str, Domain], dict[str, Domain]]:
    """Domains under a rule for unknown attributes; attributes still share those with a name."""
    made: dict[int, Domain] = {}

    def all_under(given: Mapping[str, Domain]) -> dict[str, Domain]:
        return {n: made.setdefault(id(each), each.under(unknown)) for n, each in given.items()}

    return all_under(domains), all_under(attributes)


def check_name(where: str, name: object) -> None:
    """Refuse a name that cannot be quoted: with a backquote or a control character."""
    if not isinstance(name, str) or not name or len(name) > NAME_LIMIT:
        raise SchemaError(
            f"{where}: a name is text of 1 to {NAME_LIMIT} characters; put it in quotes"
        )
    if "`" in name or not name.isprintable():
        raise SchemaError(f"{where}: a name cannot contain a backquote or a control character")
