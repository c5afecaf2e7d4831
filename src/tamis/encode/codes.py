"""One ordered int64 space for every domain.

A codec maps the values of one domain to codes in the same order, and a comparator with its constant
to the intervals of codes that satisfy it. Matchers know nothing else of a domain.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Any

from tamis.encode import intervals
from tamis.encode.intervals import TEXT_BOTTOM, TEXT_TOP, Cut, Intervals
from tamis.encode.pattern import TextCheck
from tamis.model.condition import Literal, Predicate
from tamis.model.domain import INT_HIGH, INT_LOW, Domain, Integer
from tamis.model.named_domains import Enumerated, Hierarchy

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENDLESS = 1 << 62
_DOUBLE, _WHOLE = struct.Struct("<d"), struct.Struct("<q")
_DIRECT = frozenset(("=", "<", "<=", ">", ">=", "starts with"))  # comparators that codecs implement


def decimal_code(value: float) -> int:
    """The order-preserving image of a double: its bits, with the sign applied to the magnitude.

    Neighbouring doubles have neighbouring codes, and both zeros have code 0.
    """
    bits: int = _WHOLE.unpack(_DOUBLE.pack(value))[0]
    return bits if bits >= 0 else -(bits & INT_HIGH)


def timestamp_code(value: datetime) -> int:
    """Microseconds since 1970, in UTC."""
    return (value - _EPOCH) // _MICROSECOND


class Codec(ABC):
    """The codes of one domain. All its values are between the cuts `bottom` and `top`."""

    bottom: Cut
    top: Cut
    null: Intervals = ()  # where null is a value

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    @abstractmethod
    def code(self, value: Any) -> int:
        """The code of a value in normal form."""

    @abstractmethod
    def compare(self, comparator: str, constant: Any) -> Intervals:
        """The intervals that satisfy `=`, `<`, `<=`, `>`, `>=` (and `starts with` for text)."""

    def satisfying(self, literal: Literal) -> Intervals:
        """The intervals of values that satisfy a literal about one value."""
        predicate, positive = literal
        comparator, given = predicate.comparator, predicate.value
        constant = self.domain.constant
        if comparator in _DIRECT:
            found = self.compare(comparator, constant(given))
        elif comparator == "exists":
            found = self.everything
        elif comparator == "!=":
            found, positive = self.compare("=", constant(given)), not positive
        elif comparator == "in":
            assert isinstance(given, tuple)
            found = intervals.unite(
                interval for item in given for interval in self.compare("=", constant(item))
            )
        else:
            assert comparator == "between"
            assert isinstance(given, tuple)
            found = intervals.intersect(
                self.compare(">=", constant(given[0])), self.compare("<=", constant(given[1]))
            )
        return found if positive else self.complement(found, predicate)

    def complement(self, found: Intervals, predicate: Predicate) -> Intervals:
        """The values that do not satisfy a predicate, if these do."""
        return intervals.complement(found, self.bottom, self.top)

    @property
    def everything(self) -> Intervals:
        """All values of the domain."""
        return ((self.bottom, self.top),)

    @property
    def scalars(self) -> Intervals:
        """All values but objects."""
        return self.everything

    @property
    def not_null(self) -> Intervals:
        """All values but null."""
        return self.everything


class NumberCodec(Codec):
    """Domains with a total order: a constant is at a code or between two."""

    def floor(self, constant: Any) -> tuple[int, bool]:
        """The greatest code up to the constant, and whether it is exact."""
        return self.code(constant), True

    def compare(self, comparator: str, constant: Any) -> Intervals:
        code, exact = self.floor(constant)
        below = code if exact else code + 1  # the cut under the constant itself
        above = code + 1
        low, high = self.bottom, self.top
        if comparator in ("=", "<", "<="):
            high = min(high, below if comparator == "<" else above)
        if comparator in ("=", ">", ">="):
            low = max(low, above if comparator == ">" else below)
        return ((low, high),) if low < high else ()


class IntegerCodec(NumberCodec):
    """Integers are their own codes."""

    def __init__(self, domain: Integer) -> None:
        super().__init__(domain)
        self.bottom = INT_LOW if domain.low is None else domain.low
        self.top = (INT_HIGH if domain.high is None else domain.high) + 1

    def code(self, value: int) -> int:
        return value

    def floor(self, constant: int | float) -> tuple[int, bool]:
        if isinstance(constant, int):
            return constant, True
        return math.floor(constant), constant.is_integer()


class DecimalCodec(NumberCodec):
    """Doubles by the image of their bits."""

    bottom = decimal_code(-1.7976931348623157e308)
    top = decimal_code(1.7976931348623157e308) + 1

    def code(self, value: float) -> int:
        return decimal_code(value)


class TimestampCodec(NumberCodec):
    """Microseconds since 1970."""

    bottom = timestamp_code(datetime.min.replace(tzinfo=UTC))
    top = timestamp_code(datetime.max.replace(tzinfo=UTC)) + 1

    def code(self, value: datetime) -> int:
        return timestamp_code(value)


class BooleanCodec(NumberCodec):
    """false is 0, true is 1."""

    bottom, top = 0, 2

    def code(self, value: bool) -> int:
        return int(value)


class NameCodec(Codec):
    """Enumerated and hierarchical domains: related names get neighbouring codes.

    A tree is numbered in preorder, so "is a kind of" is one interval. A DAG is numbered along its
    first parents, and a partial order along its pairs; both may need several intervals.

    A domain that `grows` (event types) has no last name: `!=` and `exists` include names that do
    not exist yet.
    """

    bottom = 0

    def __init__(self, domain: Enumerated | Hierarchy, grows: bool = False) -> None:
        super().__init__(domain)
        up: dict[str, list[str]] = {name: [] for name in domain.values}
        if isinstance(domain, Hierarchy):
            for name, parents in domain.parents.items():
                up[name].extend(parents)
        else:
            for low, high in domain.order or ():
                up[low].append(high)
        self._up = up
        self._down: dict[str, list[str]] = {name: [] for name in domain.values}
        for name, above in up.items():
            for parent in above:
                self._down[parent].append(name)
        names = self._preorder() if isinstance(domain, Hierarchy) else self._by_height()
        self.codes = {name: code for code, name in enumerate(names)}
        self.top = _ENDLESS if grows else len(names)
        self._sizes = self._subtrees(names) if isinstance(domain, Hierarchy) else None
        self._known: dict[tuple[str, str], Intervals] = {}

    def code(self, value: str) -> int:
        return self.codes[value]

    def compare(self, comparator: str, constant: str) -> Intervals:
        key = (comparator, constant)
        found = self._known.get(key)
        if found is None and self._sizes is not None and comparator in ("<", "<="):
            code = self.codes[constant]
            found = intervals.unite([(code + (comparator == "<"), code + self._sizes[code])])
        if found is None:
            onward = self._down if comparator in ("<", "<=") else self._up
            names = {constant} if comparator == "=" else self._reach(constant, onward)
            if comparator in ("<", ">"):
                names = names - {constant}
            codes = (self.codes[name] for name in names)
            found = self._known[key] = intervals.unite((code, code + 1) for code in codes)
        return found

    def _reach(self, start: str, onward: dict[str, list[str]]) -> set[str]:
        seen, stack = {start}, [start]
        while stack:
            fresh = [name for name in onward[stack.pop()] if name not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        return seen

    def _preorder(self) -> list[str]:
        """Preorder along first parents."""
        below: dict[str, list[str]] = {name: [] for name in self._up}
        for name, above in self._up.items():
            if above:
                below[above[0]].append(name)
        order: list[str] = []
        stack = [name for name, above in reversed(self._up.items()) if not above]
        while stack:
            name = stack.pop()
            order.append(name)
            stack.extend(reversed(below[name]))
        return order

    def _subtrees(self, names: list[str]) -> list[int] | None:
        """The number of names under each, with itself, by code; None if this is not a tree.

        In a tree of a million names, visiting those under each of many constants would take hours.
        """
        if any(len(above) > 1 for above in self._up.values()):
            return None
        sizes = [1] * len(names)
        for code in range(len(names) - 1, -1, -1):  # children come after their parent
            for parent in self._up[names[code]]:
                sizes[self.codes[parent]] += sizes[code]
        return sizes

    def _by_height(self) -> list[str]:
        """Topological order, low names first (Kahn's algorithm): a chain keeps its order.

        Without an order the names stay as they are, so event types can grow at the end.
        """
        waiting = {name: len(lower) for name, lower in self._down.items()}
        ready = [name for name, count in waiting.items() if count == 0]
        order: list[str] = []
        for name in ready:  # grows during the loop
            order.append(name)
            for higher in self._up[name]:
                waiting[higher] -= 1
                if waiting[higher] == 0:
                    ready.append(higher)
        return order


class OpaqueCodec(Codec):
    """Every value has code 0: only presence matters."""

    bottom, top = 0, 1

    def code(self, value: object) -> int:
        return 0

    def compare(self, comparator: str, constant: Any) -> Intervals:
        raise AssertionError("an opaque attribute only exists or is missing")


class ElementsCodec(NumberCodec):
    """Lists of structs: 0, and the numbers of the conditions that some element satisfies."""

    bottom, top = 0, _ENDLESS

    def code(self, value: int) -> int:
        return value


class TextCodec(Codec):
    """Intervals between texts; the labels of the attribute map them to codes."""

    bottom, top = TEXT_BOTTOM, TEXT_TOP
    texts: Intervals = ((TEXT_BOTTOM, TEXT_TOP),)

    def code(self, value: str) -> int:
        raise AssertionError("the code of a text comes from the labels of its attribute")

    def compare(self, comparator: str, constant: str) -> Intervals:
        low, high = TEXT_BOTTOM, TEXT_TOP
        if comparator == "starts with":
            low, high = intervals.before(constant), intervals.after_prefix(constant)
        if comparator in ("=", "<", "<="):
            cut = intervals.before if comparator == "<" else intervals.after
            high = cut(constant)
        if comparator in ("=", ">", ">="):
            cut = intervals.after if comparator == ">" else intervals.before
            low = cut(constant)
        return () if intervals.empty(low, high) else ((low, high),)

    def pattern(self, pattern: TextCheck) -> TextCheck:
        """A check of text as it applies to what the labels hold."""
        return pattern


def codec(domain: Domain, grows: bool = False) -> Codec:
    """The codec of a domain; `grows` if more names may come."""
    from tamis.encode.dynamic_codes import DynamicCodec

    if isinstance(domain, Integer):
        return IntegerCodec(domain)
    if isinstance(domain, Enumerated | Hierarchy):
        return NameCodec(domain, grows)
    kinds: dict[str, type[Codec]] = {
        "decimal": DecimalCodec,
        "text": TextCodec,
        "boolean": BooleanCodec,
        "timestamp": TimestampCodec,
        "opaque": OpaqueCodec,
        "dynamic": DynamicCodec,
        "structs": ElementsCodec,
    }
    return kinds[domain.kind](domain)
