"""Buckets of time: which column has the time, where buckets begin, and which one an event is in.

Buckets have round lengths: a quarter of an hour, a day, a month; or 1, 2 or 5 times a power of ten,
where time is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import one_chunk
from tamis.encode.columns import column_codes
from tamis.encode.lines.event_columns import schema_encoder
from tamis.errors import SparkError

Times = NDArray[Any]  # int64, or doubles
TIME, WHOLE, DECIMAL = "time", "whole", "decimal"
_DAY = 86_400 * 10**6  # microseconds
_MONDAY = 4 * _DAY  # the first one since 1970
# Microseconds of a unit, its name, how many make a bucket.
_UNITS = (
    (1, "microsecond", (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    (10**3, "millisecond", (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    (10**6, "second", (1, 2, 5, 10, 15, 30)),
    (60 * 10**6, "minute", (1, 2, 5, 10, 15, 30)),
    (3_600 * 10**6, "hour", (1, 2, 3, 6, 12)),
    (_DAY, "day", (1, 2)),
    (7 * _DAY, "week", (1, 2)),
)
_MONTHS = (1, 2, 3, 6)
_YEARS = tuple(digit * 10**power for power in range(6) for digit in (1, 2, 5))
_EXACT = ((60 * _DAY, "D"), (_DAY, "m"), (60 * 10**6, "s"))  # from so long on
_MICROS = {"s": 10**6, "ms": 10**3, "us": 1}


class EventClock(NamedTuple):
    """The column with the time of an event."""

    path: tuple[str, ...]  # a column, or a field of a struct in one
    kind: str
    zone: bool = False  # whether its times are points in time, not local times
    days: bool = False  # whether it has dates only
    schema: str = ""  # the document of the schema, if it is an attribute that is a timestamp

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def values(self, column: Any) -> tuple[Times, NDArray[np.bool_]]:
        """The time of each row, and whether it has one."""
        whole = one_chunk(column) if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.DictionaryArray):
            whole = whole.dictionary_decode()
        known = np.asarray(whole.is_valid())
        kind = kind_of(whole.type, text=bool(self.schema))
        if kind is None or (kind == TIME) != (self.kind == TIME):
            # Rows of a log that have a wrong type are dead; the others are not.
            nothing = np.zeros(len(whole), np.float64 if self.kind == DECIMAL else np.int64)
            return nothing, np.zeros(len(whole), np.bool_)
        if kind == TIME:
            return self._times(whole, known)
        if self.kind == kind == WHOLE:
            # As for doubles, a value beyond int64 counts as none.
            values = np.asarray(_filled(whole.cast(pa.int64(), safe=False)))
            return values, known & (values >= 0) if pa.types.is_uint64(whole.type) else known
        values = np.asarray(_filled(whole.cast(pa.float64(), safe=False)))
        known &= np.isfinite(values)
        if self.kind == DECIMAL:
            return values, known
        known &= np.abs(values) < 2.0**63
        return np.floor(np.where(known, values, 0)).astype(np.int64), known

    def _times(self, column: pa.Array, known: NDArray[np.bool_]) -> tuple[Times, Any]:
        """Microseconds since 1970."""
        kind = column.type
        if is_text(kind):
            return self._read(column, known)
        if pa.types.is_date(kind):
            raw = np.asarray(_filled(column.cast(pa.date32()).cast(pa.int32()))).astype(np.int64)
            return raw * _DAY, known
        raw = np.asarray(_filled(column.cast(pa.int64())))
        assert isinstance(kind, pa.TimestampType)
        if kind.unit == "ns":
            return raw // 1_000, known
        times = _MICROS[kind.unit]
        near = np.abs(raw) <= np.iinfo(np.int64).max // times
        return np.where(near, raw, 0) * times, known & near

    def _read(self, column: pa.Array, known: NDArray[np.bool_]) -> tuple[Times, Any]:
        """Times of text, read by the rules of the attribute."""
        rules = schema_encoder(self.schema)
        codes, wrong, _ = column_codes(rules, rules.positions[self.name], column.drop_null())
        values, right = np.zeros(len(column), np.int64), known.copy()
        values[known] = codes
        if wrong is not None:
            right[np.flatnonzero(known)[wrong]] = False
        return values, right


def clock_of(name: str, types: Iterable[pa.DataType], schema: str = "") -> EventClock:
    """The clock of a column of these types.

    `schema` is given if the column is an attribute of the domain timestamp.
    """
    kinds, zone, days = set(), bool(schema), True
    for given in types:
        kind = given.value_type if isinstance(given, pa.DictionaryType) else given
        sort = kind_of(kind, text=bool(schema))
        if sort is None:
            raise SparkError(
                f"the column {name!r} is {kind}, which is not a time: expected timestamps, "
                "dates or numbers, or text if it is a timestamp in the schema"
            )
        kinds.add(sort)
        days = days and pa.types.is_date(kind)
        zone = zone or (isinstance(kind, pa.TimestampType) and kind.tz is not None)
    if kinds == {WHOLE, DECIMAL}:
        kinds = {DECIMAL}
    if len(kinds) > 1:
        raise SparkError(f"the column {name!r} has times in some files and numbers in others")
    return EventClock(tuple(name.split(".")), kinds.pop(), zone, days, schema)


def kind_of(kind: pa.DataType, *, text: bool = False) -> str | None:
    """The kind of time that a type holds, or None. `text` may be read as time."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or (text and is_text(kind)):
        return TIME
    if pa.types.is_integer(kind):
        return WHOLE
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return DECIMAL
    return None


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text, whose order is not that of times."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _filled(column: pa.Array) -> pa.Array:
    return column.fill_null(0) if column.null_count else column


# -- buckets ---------------------------------------------------------------------------------------


class TimeAxis(NamedTuple):
    """Buckets: the i-th has values from `edges[i]` to before `edges[i + 1]`."""

    kind: str
    zone: bool
    edges: Times
    step: str  # the length of a bucket in words; empty if there is only one

    @property
    def buckets(self) -> int:
        return len(self.edges) - 1

    def places(self, values: Times, known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The bucket of each row; rows without a value are in one after the last."""
        found = np.searchsorted(self.edges, values, side="right") - 1
        return np.where(known, np.clip(found, 0, self.buckets - 1), self.buckets)

    def arrow(self, values: Times, known: NDArray[np.bool_] | None = None) -> pa.Array:
        """Values of the axis as a column, null where they are not known."""
        column = pa.array(values, mask=None if known is None else ~known)
        if self.kind != TIME:
            return column
        return column.cast(pa.timestamp("us", "UTC" if self.zone else None))

    def written(self, value: Any) -> str:
        """A value in words, as exact as this axis needs."""
        if self.kind == WHOLE:
            return f"{value:,}"
        if self.kind == DECIMAL:
            return f"{value:g}"
        across = int(self.edges[-1]) - int(self.edges[0])
        unit = next((unit for least, unit in _EXACT if across >= least), "us")
        text = str(np.datetime64(int(value), "us").astype(f"M8[{unit}]")).replace("T", " ")
        return text.removesuffix(" 00:00")


def axis(
    kind: str, low: Any, high: Any, most: int, *, zone: bool = False, days: bool = False
) -> TimeAxis:
    """Buckets for the values from `low` to `high`, as short as `most` of them allow.

    If every length would give more, as at a turn of the millennium, there is one bucket.
    """
    cuts = _times(int(low), int(high), days) if kind == TIME else _numbers(kind, low, high)
    for first, last, edge, words in cuts:
        if last - first + 1 <= most:
            edges = _edges(kind, [edge(at) for at in range(first, last + 2)])
            if (edges[:-1] < edges[1:]).all():  # else doubles cannot be that close
                return TimeAxis(kind, zone, edges, words)
    end = np.nextafter(high, np.inf) if kind == DECIMAL else int(high) + 1
    return TimeAxis(kind, zone, _edges(kind, [low, end]), "")


def _edges(kind: str, edges: list[Any]) -> Times:
    if kind == DECIMAL:
        return np.array(edges, np.float64)
    limits = np.iinfo(np.int64)
    return np.array([min(max(each, limits.min), limits.max) for each in edges], np.int64)


# The number of the first and of the last bucket, where one begins, and how long they are.
_Cut = tuple[int, int, Any, str]


def _times(low: int, high: int, days: bool) -> Iterator[_Cut]:
    for unit, name, counts in _UNITS:
        for count in counts:
            step, start = unit * count, _MONDAY if name == "week" else 0
            if not days or step >= _DAY:

                def edge(at: int, step: int = step, start: int = start) -> int:
                    return at * step + start

                yield (low - start) // step, (high - start) // step, edge, _words(count, name)
    first, last = (int(np.datetime64(each, "us").astype("M8[M]").astype(np.int64)) + 1970 * 12
                   for each in (low, high))  # fmt: skip
    for count in (*_MONTHS, *(12 * years for years in _YEARS)):

        def begin(at: int, count: int = count) -> int:
            month = np.datetime64(at * count - 1970 * 12, "M")
            return int(month.astype("M8[D]").astype(np.int64)) * _DAY

        words = _words(count, "month") if count < 12 else _words(count // 12, "year")
        yield first // count, last // count, begin, words


def _words(count: int, unit: str) -> str:
    return unit if count == 1 else f"{count:,} {unit}s"


def _numbers(kind: str, low: Any, high: Any) -> Iterator[_Cut]:
    # As a double is written: 0.3 is three times 0.1.
    least, most = (Decimal(str(int(low) if kind == WHOLE else float(low))),
                   Decimal(str(int(high) if kind == WHOLE else float(high))))  # fmt: skip
    across = most - least
    if kind == DECIMAL and not across:
        return
    power = 0 if kind == WHOLE else across.adjusted() - 6
    made = int if kind == WHOLE else float
    for up in range(power, power + 40):
        for digit in (1, 2, 5):
            step = Decimal((0, (digit,), up))

            def edge(at: int, step: Decimal = step) -> Any:
                return made(at * step)

            words = f"{int(step):,}" if kind == WHOLE else f"{float(step):g}"
            yield math.floor(least / step), math.floor(most / step), edge, words
