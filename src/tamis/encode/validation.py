"""Validated events: validated and encoded once, for all engines of one schema.

The code of a text depends on the constants of an engine's subscriptions; all other codes depend on
the schema alone. So a batch for a second engine costs only its distinct texts.

`events_from_arrow` refuses a whole table for one bad row, which suits a publisher who waits for a
reply. A pipeline keeps the valid rows and sets the others aside, each with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.arrow import as_table, encode, events_from_arrow, refusals
from tamis.encode.batch import Column, EventBatch, Texts
from tamis.encode.codes import NameCodec, codec
from tamis.encode.encoded_events import Elements, EncodedEvents
from tamis.encode.encoder import Encoder
from tamis.encode.json_events import encode_events, known_values, refusal, rows_of
from tamis.errors import SchemaError
from tamis.files.arrays import Int64s
from tamis.model.elements.structs import Structs
from tamis.model.schema import Schema

_OUTSIDE = "a value is not in the domain of its attribute"


class Refused(NamedTuple):
    """A refused row, and the reason: the error of that event alone."""

    row: int
    reason: str


@dataclass(frozen=True)
class ValidEvents:
    """The consistent events of a table, encoded; the other rows with their reasons."""

    table: pa.Table  # the events, without structs
    rows: Int64s  # which rows of the given table they are
    refused: list[Refused]  # the other rows
    columns: dict[int, Column]
    texts: dict[int, Texts]  # of every text attribute
    elements: dict[int, Elements]  # of lists of structs
    schema: Schema
    stamp: int  # of the encoder that made the codes
    ignored: dict[str, int] = field(default_factory=dict)  # values left out of all rows, by name
    given: Sequence[Mapping[str, Any]] | None = None  # the events as they came, if that is needed

    def __len__(self) -> int:
        return len(self.rows)

    def recoded(self, encoder: Encoder) -> ValidEvents:
        """The same events in the codes of an encoder whose schema extends theirs.

        They stay what their own schema says: attributes that it ignores are ignored.
        """
        moved = _moved_codes(self.schema.text, encoder.schema.text)
        found = _recoded(self.encoded, moved)
        return replace(self, columns=found.columns, elements=found.elements)

    def batch(self, encoder: Encoder, moments: Int64s | int | None = None) -> EventBatch:
        """The events as a batch of an encoder. They may have a moment each, or one for all.

        Its schema may extend theirs. Any other schema validates them again.
        """
        if self.given is not None:
            given = self.given
            if not self.schema.is_open and not same_codes(self.schema, encoder.schema):
                given = [known_values(self.schema, each) for each in given]
            return encode_events(encoder, given, moments)
        found = self
        if not same_codes(self.schema, encoder.schema):
            if not extends(encoder.schema, self.schema):
                return events_from_arrow(encoder, self.table, moments)
            found = self.recoded(encoder)
        return found.encoded.batch(encoder, self.schema, moments)

    @property
    def encoded(self) -> EncodedEvents:
        """The events alone."""
        return EncodedEvents(self.table, self.columns, self.texts, self.elements, self.stamp)


def validate(encoder: Encoder, table: Any, *, partial: bool = False) -> ValidEvents:
    """Validate the rows of a table (domains, and rules R1 to R3), and encode the valid ones.

    With `partial`, rows are valid events of which only some attributes were read: a missing
    attribute does not refuse a row. Raises an `EventError` only if the table as a whole is wrong:
    if it is not a table, or has two columns with one name.
    """
    if encoder.schema.is_open:
        given = as_table(table)
        return validate_events(encoder, rows_of(given), given)
    encoded = encode(encoder, table, every_text=True)
    if partial:
        refused = [Refused(row, _OUTSIDE) for row in np.unique(encoded.certain).tolist()]
    else:
        refused = [Refused(row, str(why)) for row, why in refusals(encoder, encoded)]
    rows = np.arange(encoded.table.num_rows, dtype=np.int64)
    events = encoded.events
    if refused:
        good = np.ones(len(rows), np.bool_)
        good[[row for row, _ in refused]] = False
        rows, events = rows[good], events.filter(good)
    table, columns, texts, elements, stamp = events
    return ValidEvents(
        *(table, rows, refused, columns, texts, elements, encoder.schema, stamp),
        ignored=encoded.ignored,
    )


def validate_events(
    encoder: Encoder,
    events: Sequence[Any],
    table: pa.Table,
    known: Mapping[int, str] | None = None,
) -> ValidEvents:
    """Validate events as they came; `table` has the same rows, and some are `known` as wrong."""
    schema = encoder.schema
    reasons = {row: refusal(schema, event) for row, event in enumerate(events)} | dict(known or {})
    refused = [Refused(row, reason) for row, reason in reasons.items() if reason is not None]
    good = np.array([reason is None for _, reason in sorted(reasons.items())], np.bool_)
    rows = np.flatnonzero(good)
    return ValidEvents(
        *(table.filter(pa.array(good)), rows, sorted(refused), {}, {}, {}, schema, encoder.stamp),
        given=[events[row] for row in rows.tolist()],
    )


@lru_cache(maxsize=64)
def same_codes(one: Schema, other: Schema) -> bool:
    """Whether two schemas are equal, including the order of their attributes."""
    return one is other or one.text == other.text


def extends(newer: Schema, older: Schema) -> bool:
    """Whether a schema is an extension of another, or equal to it."""
    return _extends(newer.text, older.text)


@lru_cache(maxsize=64)
def _extends(newer: str, older: str) -> bool:
    try:
        Schema.from_dict(json.loads(newer)).check_extends(Schema.from_dict(json.loads(older)))
    except SchemaError:
        return False
    return True


class _GrownCodes(NamedTuple):
    """The new codes of the names of grown domains, by attribute and old code."""

    codes: dict[int, Int64s]
    elements: dict[int, _GrownCodes]  # of lists of structs


@lru_cache(maxsize=16)
def _moved_codes(older: str, newer: str) -> _GrownCodes:
    return _moved(*(Schema.from_dict(json.loads(each)) for each in (older, newer)))


def _moved(older: Schema, newer: Schema) -> _GrownCodes:
    positions = {name: at for at, name in enumerate(older.attributes)}
    moved = _GrownCodes({}, {})
    for name in newer.grown_attributes(older):
        at, before, after = positions[name], older.attributes[name], newer.attributes[name]
        if isinstance(before, Structs):
            assert isinstance(after, Structs)
            moved.elements[at] = _moved(before.element, after.element)
            continue
        names, now = codec(before), codec(after)
        assert isinstance(names, NameCodec)
        moved.codes[at] = np.array([now.code(each) for each in names.codes], np.int64)
    return moved


def _recoded(events: EncodedEvents, moved: _GrownCodes) -> EncodedEvents:
    """Events in the codes of grown domains, their elements included."""
    columns = {
        at: Column(moved.codes[at][codes], rows) if at in moved.codes else Column(codes, rows)
        for at, (codes, rows) in events.columns.items()
    }
    elements = {
        at: each._replace(encoded=_recoded(each.encoded, moved.elements[at]))
        if at in moved.elements
        else each
        for at, each in events.elements.items()
    }
    return events._replace(columns=columns, elements=elements)
