"""Events come in: dicts, Arrow tables and DataFrames, of which some rows may be bad."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.arrow import EXPECTED, events_from_table
from tamis.encode.arrow_checks import checked_table
from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.encode.json_events import rows_of
from tamis.encode.tables.frames import (
    ABSENT,
    REFUSE,
    check_missing,
    frame_rows,
    has_objects,
    missing_cells,
)
from tamis.encode.validation import Refused, validate
from tamis.errors import EventError
from tamis.files.arrays import Int64s
from tamis.match.answers import Matches
from tamis.model.event import Event
from tamis.model.frame_values import without_missing

REFUSE_ALL, SKIP, REPORT = "refuse", "skip", "report"
BAD = (REFUSE_ALL, SKIP, REPORT)


class GoodEvents(NamedTuple):
    """The good events of a batch, which rows they are, and the others with their reasons."""

    batch: EventBatch
    rows: Int64s
    size: int  # rows in all
    refused: list[Refused]

    def spread(self, found: Matches, bad: str) -> Matches:
        """The matches of all rows: a bad one matches nothing, and rows keep their numbers."""
        counts = np.zeros(self.size, np.int64)
        counts[self.rows] = np.diff(found.starts)
        return found.spread(counts, tuple(self.refused) if bad == REPORT else ())


def current_batch(
    encoder: Encoder, events: Any, missing: str | None, now: int | None
) -> EventBatch:
    """Events as a batch that fits the live subscriptions."""
    if not isinstance(events, EventBatch):
        return encode_events(encoder, events, missing, now)
    if events.stamp != encoder.stamp:
        raise EventError(
            "the batch is out of date: subscriptions have brought new text constants since, or "
            "another engine encoded it; encode it again"
        )
    return events


def encode_events(
    encoder: Encoder, events: Any, missing: str | None, now: int | None = None
) -> EventBatch:
    """Validate and encode events, perhaps of one moment; one bad event refuses them all."""
    check_missing(missing)
    if _is_arrow(events):
        if missing == REFUSE:
            for row, reason in sorted(missing_cells(events).items()):
                raise EventError(reason, rule="R2").at_row(row)
        rows = None
        try:
            table = _table(events, missing)
        except EventError:
            rows = frame_rows(events)
            if rows is None:
                raise
        if rows is not None:
            return encode_events(encoder, rows, missing or ABSENT, now)
        return events_from_table(encoder, table, now)
    found = []
    stamp = encoder.stamp  # before: a condition of another thread may bring attributes
    for row, given in enumerate(_rows(events)):
        try:
            found.append(_event(encoder, given, missing))
        except EventError as why:
            raise why.at_row(row) from None
    return _stamped(encoder.events(found, now), stamp)


def _table(events: Any, missing: str | None) -> pa.Table:
    """A table, checked; Arrow has no columns of mixed types, nor of Python objects."""
    if has_objects(events):
        raise EventError("a column has Python objects")
    return checked_table(events, EXPECTED, EventError, missing)


def good_events(
    encoder: Encoder, events: Any, missing: str | None, now: int | None = None
) -> GoodEvents:
    """Validate events, and encode the good ones, perhaps of one moment."""
    check_missing(missing)
    if not _is_arrow(events):
        return _good_rows(encoder, _rows(events), missing, now)
    bad = missing_cells(events) if missing == REFUSE else {}
    try:
        table = _table(events, missing)
    except EventError:
        found = frame_rows(events)
        if found is None:
            raise
        return _good_rows(encoder, found, missing or ABSENT, now)
    if encoder.schema.is_open and not bad:  # only what conditions mention is looked at
        return _good_rows(encoder, rows_of(table), None, now)
    valid = validate(encoder, table)
    reasons = {**{each.row: each.reason for each in valid.refused}, **bad}
    refused = [Refused(*each) for each in sorted(reasons.items())]
    rows = valid.rows
    if bad:
        kept = np.isin(rows, list(bad), invert=True)
        valid = validate(encoder, table.take(rows[kept]))
        rows = rows[kept][valid.rows]
    encoder.count_ignored(valid.ignored)
    return GoodEvents(valid.batch(encoder, now), rows, table.num_rows, refused)


def _good_rows(
    encoder: Encoder, events: Iterable[Any], missing: str | None, now: int | None
) -> GoodEvents:
    found, rows, refused, size, stamp = [], [], [], 0, encoder.stamp
    for row, given in enumerate(events):
        size += 1
        try:
            found.append(_event(encoder, given, missing))
            rows.append(row)
        except EventError as why:
            refused.append(Refused(row, str(why)))
    batch = _stamped(encoder.events(found, now), stamp)
    return GoodEvents(batch, np.array(rows, np.int64), size, refused)


def _stamped(batch: EventBatch, stamp: int) -> EventBatch:
    batch.stamp = stamp
    return batch


def _event(encoder: Encoder, given: Any, missing: str | None) -> Event:
    return Event.of(encoder.schema, without_missing(given) if missing == ABSENT else given)


def _is_arrow(events: Any) -> bool:
    """Whether it is Arrow data; raises for what is no batch of events at all."""
    if isinstance(events, (list, tuple)):
        return False
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return True
    if isinstance(events, (Mapping, str, bytes)) or not isinstance(events, Iterable):
        hint = "collect it first" if hasattr(events, "collect") else "one event goes to match()"
        raise EventError(f"expected {EXPECTED}, got {type(events).__name__}; {hint}")
    return False


def _rows(events: Iterable[Any]) -> Iterable[Any]:
    try:
        return iter(events)
    except TypeError as why:  # for example an array of NumPy without dimensions
        raise EventError(f"expected {EXPECTED}: {why}") from None
