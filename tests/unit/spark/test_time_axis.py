"""Buckets that people would choose, and the time of an event in a column of any type."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Schema
from tamis.errors import SparkError
from tamis.spark.events.past_events import past_events
from tamis.spark.events.time_axis import DECIMAL, TIME, WHOLE, TimeAxis, axis, clock_of
from tamis.spark.runtime.worker_cache import schema_document

SCHEMA = Schema.from_dict({"attributes": {"at": "timestamp", "seller.since": "timestamp"}})


def micros(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def times(low: str, high: str, most: int = 60, **options: Any) -> TimeAxis:
    return axis(TIME, micros(low), micros(high), most, **options)


@pytest.mark.parametrize(
    ("low", "high", "step", "first", "buckets"),
    [
        ("2024-01-01T10:03:07", "2024-01-01T10:03:50", "second", "2024-01-01T10:03:07", 44),
        ("2024-01-01T10:03", "2024-01-01T17:59", "10 minutes", "2024-01-01T10:00", 48),
        ("2024-01-01T10:03", "2024-01-31T12:00", "day", "2024-01-01", 31),
        ("2024-01-03", "2024-12-31", "week", "2024-01-01", 53),  # of which each begins on a Monday
        ("2019-05-03", "2024-02-02", "month", "2019-05-01", 58),
        ("1815-05-03", "1999-02-02", "5 years", "1815-01-01", 37),
        (
            "1969-12-31T23:59:59",
            "1970-01-01T00:00:01",
            "50 milliseconds",
            "1969-12-31T23:59:59",
            41,
        ),
    ],
)
def test_buckets_of_time(low: str, high: str, step: str, first: str, buckets: int) -> None:
    found = times(low, high)
    assert (found.step, found.buckets) == (step, buckets)
    assert found.edges[0] == micros(first)
    _check(found, micros(low), micros(high))


def test_days_are_not_cut() -> None:
    found = times("2024-01-01", "2024-01-20", days=True)
    assert (found.step, found.buckets) == ("day", 20)


@pytest.mark.parametrize(
    ("kind", "low", "high", "most", "step", "edges"),
    [
        (WHOLE, 0, 2_999, 3, "1,000", [0, 1_000, 2_000, 3_000]),
        (WHOLE, -7, 99, 10, "20", [-20, 0, 20, 40, 60, 80, 100]),
        (WHOLE, 5, 5, 10, "1", [5, 6]),
        (WHOLE, 3, 5, 10, "1", [3, 4, 5, 6]),
        (DECIMAL, -1.5, 0.75, 5, "0.5", [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0]),
        (DECIMAL, 0.1, 0.29, 2, "0.1", [0.1, 0.2, 0.3]),
        (DECIMAL, 0.3, 0.69, 4, "0.1", [0.3, 0.4, 0.5, 0.6, 0.7]),
    ],
)
def test_buckets_of_numbers(
    kind: str, low: float, high: float, most: int, step: str, edges: list[float]
) -> None:
    found = axis(kind, low, high, most)
    assert found.step == step
    assert found.edges.tolist() == edges


@pytest.mark.parametrize("most", [1, 2, 7, 60, 1_000])
@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (WHOLE, -(2**63), 2**63 - 1),
        (TIME, -(2**63) + 1, 2**63 - 1),
        (TIME, -1, 0),
        (DECIMAL, -1e308, 1e308),
        (DECIMAL, 1e300, np.nextafter(1e300, np.inf)),
        (DECIMAL, 5e-324, 1e-322),
        (DECIMAL, 7.0, 7.0),
        (DECIMAL, -1.0, 1.0),
    ],
)
def test_there_are_never_more_than_asked_for(kind: str, low: Any, high: Any, most: int) -> None:
    found = axis(kind, low, high, most)
    assert 1 <= found.buckets <= most
    assert (found.edges[:-1] < found.edges[1:]).all()
    _check(found, low, high)


def _check(found: TimeAxis, low: Any, high: Any) -> None:
    """The ends are in the first and the last bucket, and values are where the edges say."""
    values = np.array([low, high], found.edges.dtype)
    assert found.places(values, np.ones(2, np.bool_)).tolist() == [0, found.buckets - 1]
    begins = found.edges[:-1]
    places = found.places(begins, np.ones(len(begins), np.bool_))
    assert places.tolist() == list(range(found.buckets))


def test_what_has_no_time_comes_last() -> None:
    found = axis(WHOLE, 0, 9, 5)
    known = np.array([True, False, True])
    assert found.places(np.array([9, 9, 0]), known).tolist() == [4, 5, 0]


def test_values_in_words() -> None:
    assert times("2024-01-01", "2024-05-05").written(micros("2024-02-03T10:00")) == "2024-02-03"
    assert times("2024-01-01", "2024-01-05").written(micros("2024-01-03T10:00")).endswith(" 10:00")
    assert times("2024-01-01", "2024-01-05").written(micros("2024-01-03")) == "2024-01-03"
    exact = times("2024-01-01", "2024-01-01T00:00:01").written(micros("2024-01-01T00:00:00.5"))
    assert exact == "2024-01-01 00:00:00.500000"
    assert axis(WHOLE, 0, 10**6, 9).written(1234) == "1,234"
    assert axis(DECIMAL, 0, 1, 9).written(0.5) == "0.5"


MOMENT = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
NAIVE = MOMENT.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([NAIVE, None], pa.timestamp("s")), micros("2024-02-03T04:05:06")),
        (pa.array([NAIVE, None], pa.timestamp("ms")), micros("2024-02-03T04:05:06")),
        (pa.array([MOMENT, None], pa.timestamp("us", "UTC")), micros("2024-02-03T04:05:06")),
        (
            pa.array([MOMENT, None], pa.timestamp("ns", "America/New_York")),
            micros("2024-02-03T04:05:06"),
        ),
        (pa.array([date(2024, 2, 3), None], pa.date32()), micros("2024-02-03")),
        (pa.array([date(2024, 2, 3), None], pa.date64()), micros("2024-02-03")),
        (pa.array([7, None], pa.int16()), 7),
        (pa.array([2**53 + 1, None, 2**63], pa.uint64()), 2**53 + 1),  # which no double is
        (pa.array([7.5, None, float("nan")]), 7.5),
        (pa.array([decimal.Decimal("7.25"), None]), 7.25),
        (pa.array([7, None]).dictionary_encode(), 7),
    ],
)
def test_columns_that_tell_the_time(column: pa.Array, expected: float) -> None:
    values, known = clock_of("at", [column.type]).values(pa.chunked_array([column]))
    assert known.tolist() == [True, *[False] * (len(column) - 1)]
    assert values[0] == expected


def test_text_of_an_attribute_is_read_by_its_rules() -> None:
    clock = clock_of("seller.since", [pa.string()], schema_document(SCHEMA))
    column = pa.array(["2024-02-03T05:05:06+01:00", None, "never"])
    values, known = clock.values(column)
    assert known.tolist() == [True, False, False]
    assert values[0] == micros("2024-02-03T04:05:06")
    assert (clock.kind, clock.zone, clock.path) == (TIME, True, ("seller", "since"))


def test_values_that_are_not_a_time() -> None:
    """As rows of a log may have them: the events are dead, but they are rows."""
    _, known = clock_of("at", [pa.timestamp("s")]).values(pa.array([2**60, 5], pa.timestamp("s")))
    assert known.tolist() == [False, True], "too far away"
    clock = clock_of("at", [pa.timestamp("us")])
    for column in (pa.array(["x"]), pa.array([3]), pa.nulls(1)):
        assert clock.values(column)[1].tolist() == [False]
    whole = clock_of("n", [pa.int64()])
    values, known = whole.values(pa.array([5.0, 5.5, float("inf"), None]))
    assert (values[:2].tolist(), known.tolist()) == ([5, 5], [True, True, False, False])


def test_types_of_several_files() -> None:
    assert clock_of("n", [pa.int64(), pa.float64()]).kind == DECIMAL
    assert clock_of("n", [pa.date32(), pa.timestamp("us", "UTC")]).zone
    assert not clock_of("n", [pa.date32(), pa.timestamp("us")]).days
    with pytest.raises(SparkError, match="times in some files and numbers in others"):
        clock_of("n", [pa.int64(), pa.date32()])
    for kind in (pa.string(), pa.bool_(), pa.list_(pa.int64()), pa.time64("us")):
        with pytest.raises(SparkError, match="which is not a time"):
            clock_of("n", [kind])


def test_a_file_whose_column_tells_no_time_is_named(tmp_path: Path) -> None:
    schema = Schema.from_dict({"attributes": {"n": "integer"}})
    parquet.write_table(pa.table({"n": [1], "at": [5]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"n": [1], "at": ["soon"]}), tmp_path / "b.parquet")
    with pytest.raises(SparkError, match=r"b\.parquet: the column 'at' is string, which is not"):
        past_events(tmp_path, schema).clock("at")
    assert past_events(tmp_path / "a.parquet", schema).where == str(tmp_path / "a.parquet")
    assert past_events(tmp_path, schema).where == str(tmp_path)
