"""The tables of a back-test, from its tally."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from tamis.engine.condition_sources import TableRow
from tamis.errors import SparkError, StoreError
from tamis.files.atomic import atomic_file, remove_leftovers
from tamis.files.os_errors import os_errors_as
from tamis.match.answers import Matches
from tamis.replay.parts import SEQUENCE, SUBSCRIPTION
from tamis.spark.backtest.tally import BacktestTally
from tamis.spark.events.time_axis import TimeAxis
from tamis.spark.runtime.engine_folders import SavedSubscriptions

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.spark.backtest.backtest_job import Backtest

Int64s = NDArray[np.int64]
_FILES = ("counts", "over_time", "totals", "samples")
_WORDED = 100_000  # conditions that are printed
_DEAD = "dead"  # reasons of dead letters, where there are any


def subscriptions_table(taken: SavedSubscriptions, slots: Sequence[Int64s]) -> pa.Table:
    """The id and the condition of each subscription, in the order of their numbers."""
    ids, conditions = [], []
    for engine, mine in zip(taken.engines, slots, strict=True):
        starts = np.array([0, len(mine)], np.int64)
        named = engine.slot_table.with_ids(Matches(starts, mine))
        conditions.append(_conditions(engine, named.subscriptions.tolist()))
        ids.append(named.arrow_ids(taken.texts))
    return pa.table(
        {SUBSCRIPTION: pa.chunked_array(ids), "condition": pa.chunked_array(conditions)}
    ).combine_chunks()


def _conditions(engine: Engine, ids: Sequence[Any]) -> pa.Array:
    """Conditions as they were written, where they came as text.

    Only `_WORDED` of those that came as predicates: to print one takes twenty times as long as to
    find a text.
    """
    texts, left = [], _WORDED
    for id in ids:
        source: Any = engine.slot_table.source(id)
        if isinstance(source, TableRow):
            source = source.column[source.row].as_py()
        if not isinstance(source, str):
            source, left = engine.condition(id) if left > 0 else None, left - 1
        texts.append(source)
    return pa.array(texts, pa.string())


def counts_table(tally: BacktestTally, axis: TimeAxis, known: pa.Table, events: int) -> pa.Table:
    """How many events each subscription matched, and the first and the last time."""
    matched, seen = tally.grid.sum(axis=1), tally.first <= tally.last
    counted = {
        "matched": matched,
        "share": matched / max(1, events),
        "first": axis.arrow(tally.first, seen),
        "last": axis.arrow(tally.last, seen),
    }
    return pa.table(dict(zip(known.column_names, known.columns, strict=True)) | counted)


def _buckets(axis: TimeAxis, places: Int64s) -> dict[str, pa.Array]:
    """Where buckets begin and end; null for the bucket of events without a time."""
    timed = places < axis.buckets
    at = np.where(timed, places, 0)
    return {
        "begin": axis.arrow(axis.edges[at], timed),
        "end": axis.arrow(axis.edges[at + 1], timed),
    }


def over_time_table(tally: BacktestTally, axis: TimeAxis, known: pa.Table) -> pa.Table:
    """How many events each subscription matched in each bucket, without buckets that have none."""
    subscriptions, places, counts = tally.over_time()
    ids = known[SUBSCRIPTION].take(pa.array(subscriptions))
    return pa.table({SUBSCRIPTION: ids, **_buckets(axis, places), "matched": counts})


def totals_table(tally: BacktestTally, axis: TimeAxis) -> pa.Table:
    """All events by bucket. Events without a time have a bucket of their own."""
    places = np.arange(axis.buckets + bool(tally.events[-1]))
    return pa.table(
        {
            **_buckets(axis, places),
            "events": tally.events[places],
            "matched": tally.matched[places],
            "dead": tally.dead[places],
            "pairs": tally.grid.sum(axis=0)[places],
        }
    )


def reasons_table(tally: BacktestTally) -> pa.Table:
    """Why events are dead, the most frequent reason first."""
    found = sorted(tally.reasons.items(), key=lambda each: (-each[1][0], each[1][1]))
    return pa.table(
        {
            "reason": pa.array([reason for reason, _ in found], pa.string()),
            "events": pa.array([count for _, (count, _) in found], pa.int64()),
            "first": pa.array([first for _, (_, first) in found], pa.int64()),
        }
    )


def samples_table(tally: BacktestTally, known: pa.Table) -> pa.Table:
    """The samples of each subscription, in the order of the events."""
    subscriptions, numbers, kept = tally.samples.kept()
    order = np.lexsort((numbers, subscriptions))
    subscriptions, numbers = subscriptions[order], numbers[order]
    events = _joined(kept)
    there = np.asarray(events[SEQUENCE])
    sorted_by = np.argsort(there)
    rows = sorted_by[np.searchsorted(there, numbers, sorter=sorted_by)]
    ids = known[SUBSCRIPTION].take(pa.array(subscriptions))
    return events.take(pa.array(rows)).add_column(0, SUBSCRIPTION, ids).combine_chunks()


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables whose columns may differ. A column that has several types becomes text."""
    if not tables:
        return pa.table({SEQUENCE: pa.array([], pa.int64())})
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        pass
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    several = {name for name, types in kinds.items() if len(types) > 1}
    return pa.concat_tables([_texts(each, several) for each in tables], promote_options="default")


def _texts(table: pa.Table, names: set[str]) -> pa.Table:
    for at, name in enumerate(table.column_names):
        if name in names:
            texts = [
                None if each is None else json.dumps(each, default=str, ensure_ascii=False)
                for each in table[name].to_pylist()
            ]
            table = table.set_column(at, name, pa.array(texts, pa.string()))
    return table


# -- as files --------------------------------------------------------------------------------------


def check_new(out: Path) -> None:
    """Refuse a folder that holds a back-test."""
    if out.exists() and not out.is_dir():
        raise SparkError(f"{out}: is a file, not a folder for counts")
    if (out / f"{_FILES[0]}.parquet").exists():
        raise SparkError(f"{out}: holds a back-test already; name another folder")


def write(found: Backtest, out: Path) -> list[str]:
    """Write the tables of a back-test to a folder; the names of the files."""
    tables = {name: getattr(found, name) for name in _FILES}
    if found.dead:
        tables[_DEAD] = found.reasons
    with os_errors_as(StoreError, f"{out}: cannot be written to", unchanged=False):
        out.mkdir(parents=True, exist_ok=True)
        # The counts come last: where they are, all tables are.
        for name in reversed(tables):
            remove_leftovers(out / f"{name}.parquet")
            with atomic_file(out / f"{name}.parquet") as file:
                parquet.write_table(tables[name], file)
    return [f"{name}.parquet" for name in tables]
