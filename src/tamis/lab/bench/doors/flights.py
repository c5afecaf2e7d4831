"""Flights and the alerts that people set on them: events of 19 fields, or of eight.

The fields are those of the table that many tutorials use, so the size of an event is a usual one.
Nine in ten alerts have an equality, and half have a range too.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from tamis.workload import Workload
from tamis.workload.base import plain_schema
from tamis.workload.draw import SUBSCRIPTIONS, Floats, Ints, stream, weighted, zipf_weights
from tamis.workload.tables import EQ, GT, LE, events_table, subscriptions_table, words

# What conditions mention, and what events of eight fields have.
ASKED = ("carrier", "flight", "origin", "dest", "dep_delay", "arr_delay", "distance", "hour")
_TEXTS = {
    "carrier": [f"C{number:02d}" for number in range(16)],
    "origin": ["EWR", "JFK", "LGA"],
    "dest": [f"D{number:03d}" for number in range(105)],
    "tailnum": [f"N{number:05d}" for number in range(4_000)],
}
_COLUMNS = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"),
    *("sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest"),
    *("air_time", "distance", "hour", "minute", "time_hour"),
)
_FLIGHTS = 5_000  # numbers
# The kinds of alerts, with their shares: the fields, each with its comparator.
_KINDS: tuple[tuple[float, tuple[tuple[str, int], ...]], ...] = (
    (0.20, (("carrier", EQ), ("flight", EQ))),
    (0.15, (("origin", EQ), ("dest", EQ))),
    (0.20, (("origin", EQ), ("dest", EQ), ("dep_delay", GT))),
    (0.15, (("carrier", EQ), ("dest", EQ), ("arr_delay", GT))),
    (0.15, (("dest", EQ), ("hour", GT), ("hour", LE))),
    (0.05, (("carrier", EQ), ("origin", EQ), ("distance", GT), ("dep_delay", GT))),
    (0.10, (("dep_delay", GT), ("distance", GT))),
)


def make(n: int, *, seed: int, fields: int = 8) -> Workload:
    """`n` alerts on flights of so many fields, 8 or 19."""
    names = ASKED if fields == len(ASKED) else _COLUMNS
    rng = stream(seed, SUBSCRIPTIONS)
    kinds = weighted(rng, np.cumsum([share for share, _ in _KINDS]), n)
    lengths = np.array([len(asked) for _, asked in _KINDS])[kinds]
    flat = [asked for kind in kinds.tolist() for asked in _KINDS[kind][1]]
    attribute = np.array([ASKED.index(name) for name, _ in flat])
    comparator = np.array([each for _, each in flat])
    code = np.full(len(flat), -1)
    value = np.zeros(len(flat))
    for at, name in enumerate(ASKED):
        here = np.flatnonzero(attribute == at)
        if name in _TEXTS:
            code[here] = _texts(rng, name, len(here))
        else:
            value[here] = _constants(rng, name, comparator[here])
    every = [text for name in _TEXTS for text in _TEXTS[name]]
    starts = dict(zip(_TEXTS, np.cumsum([0, *map(len, _TEXTS.values())]).tolist(), strict=False))
    shift = np.array([starts.get(name, 0) for name in ASKED])[attribute]
    table = subscriptions_table(
        lengths, ASKED, attribute, comparator, value, (np.where(code < 0, -1, code + shift), every)
    )
    kind_of = dict.fromkeys(names, "integer") | {name: "text" for name in names if name in _TEXTS}
    if "time_hour" in names:
        kind_of["time_hour"] = "timestamp"
    schema = plain_schema(dict(kind_of), "optional")
    return Workload(
        "flights", schema, table, seed, {"n": n, "fields": fields}, partial(_events, names=names)
    )


def _texts(rng: np.random.Generator, name: str, count: int) -> Ints:
    """Some carriers and destinations are busier than others."""
    return weighted(rng, np.cumsum(zipf_weights(len(_TEXTS[name]), 0.7)), count)


def _constants(rng: np.random.Generator, name: str, comparator: Ints) -> Floats:
    """What alerts compare a field with: rare delays, long distances, hours before and after."""
    count = len(comparator)
    if name == "flight":
        return rng.integers(1, _FLIGHTS, count, endpoint=True).astype(np.float64)
    if name == "hour":
        drawn = np.where(comparator == GT, rng.integers(5, 14, count), rng.integers(15, 24, count))
        return drawn.astype(np.float64)
    low, high = (1_500, 2_500) if name == "distance" else (30, 240)
    return rng.integers(low, high, count).astype(np.float64)


def _events(rng: np.random.Generator, n: int, *, names: tuple[str, ...]) -> pa.Table:
    hour, minute = rng.integers(5, 24, n), rng.integers(0, 60, n)
    delay = np.rint(rng.exponential(40, n) - 20).astype(np.int64)
    late = delay + rng.integers(-20, 20, n)
    flown = rng.integers(40, 360, n)
    month, day = rng.integers(1, 13, n), rng.integers(1, 29, n)
    days = (np.datetime64("2013-01") + (month - 1)).astype("datetime64[D]") + (day - 1)
    never = rng.random(n) < 0.02  # cancelled: without times and delays
    scheduled = hour * 60 + minute
    columns = {
        "year": np.full(n, 2013),
        "month": month,
        "day": day,
        "dep_time": pa.array(_clock(scheduled + delay), mask=never),
        "sched_dep_time": _clock(scheduled),
        "dep_delay": pa.array(delay, mask=never),
        "arr_time": pa.array(_clock(scheduled + flown + late), mask=never),
        "sched_arr_time": _clock(scheduled + flown),
        "arr_delay": pa.array(late, mask=never),
        "flight": rng.integers(1, _FLIGHTS, n, endpoint=True),
        "air_time": pa.array(flown, mask=never),
        "distance": flown * 7,
        "hour": hour,
        "minute": minute,
        "time_hour": pa.array(
            days.astype("datetime64[us]") + hour.astype("timedelta64[h]"),
            pa.timestamp("us", tz="UTC"),
        ),
    } | {name: words(_texts(rng, name, n), _TEXTS[name]) for name in _TEXTS}
    return events_table({name: columns[name] for name in names})


def _clock(minutes: Ints) -> Ints:
    """Minutes of a day as hours and minutes: 1234 is 12:34."""
    return minutes // 60 % 24 * 100 + minutes % 60
