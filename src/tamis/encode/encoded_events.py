"""Events of a table in codes, which all engines of one schema share.

Two kinds of codes depend on the subscriptions of an engine: those of texts, and those of lists of
structs. They are made for each engine, from the distinct texts and the encoded elements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.batch import Column, EventBatch, Texts
from tamis.encode.encoder import Encoder
from tamis.encode.tables.arrow_reads import TableReads
from tamis.files.arrays import Bools, Int64s
from tamis.model.schema import Schema


class EncodedEvents(NamedTuple):
    """Events in codes. `stamp` is that of the encoder that made them."""

    table: pa.Table
    columns: dict[int, Column]
    texts: dict[int, Texts]  # of text attributes whose raw texts are kept
    elements: dict[int, Elements]  # of lists of structs
    stamp: int

    def batch(
        self,
        encoder: Encoder,
        schema: Schema | None = None,
        moments: Int64s | int | None = None,
    ) -> EventBatch:
        """The events as a batch of an encoder, whose schema may extend that of the events.

        They may have a moment each, or one for all.
        """
        columns, stamp = self.columns, encoder.stamp
        if self.texts and stamp != self.stamp:
            columns = dict(columns)
            for at, (texts, which, rows) in self.texts.items():
                labels = np.array(encoder.labels[at].codes(texts), np.int64)
                columns[at] = Column(labels[which], rows)
        if self.elements:
            columns = dict(columns)
            for at, (encoded, rows) in self.elements.items():
                conditions = encoder.elements[at]
                own = moments[rows] if isinstance(moments, np.ndarray) else moments
                inner = encoded.batch(conditions.encoder, moments=own)
                columns[at] = conditions.column(inner, rows)
        return EventBatch(
            self.table.num_rows,
            columns=columns,
            texts={at: texts for at, texts in self.texts.items() if encoder.patterned[at] > 0},
            stamp=stamp,
            raw=TableReads(self.table, schema or encoder.schema, columns),
            moments=moments,
        )

    def filter(self, good: Bools) -> EncodedEvents:
        """Some of the events."""
        place = np.cumsum(good) - 1  # position of each good row among them
        size = int(np.count_nonzero(good))
        columns: dict[int, Column] = {}
        texts: dict[int, Texts] = {}
        for at, (codes, rows) in self.columns.items():
            kept = good if rows is None else good[rows]
            if not kept.any():
                continue
            left = None if rows is None else place[rows[kept]]
            if left is not None and len(left) == size and (np.diff(left) > 0).all():
                left = None  # every remaining event has one value
            columns[at] = Column(codes[kept], left)
            if at in self.texts:
                distinct, which, _ = self.texts[at]
                texts[at] = Texts(distinct, which[kept], left)
        elements = {
            at: each.of_events(good, place) for at, each in self.elements.items() if at in columns
        }
        table = self.table.filter(pa.array(good))
        return EncodedEvents(table, columns, texts, elements, self.stamp)


class Elements(NamedTuple):
    """The elements of a list of structs; element j belongs to event `rows[j]`, ascending."""

    encoded: EncodedEvents
    rows: Int64s

    def of_events(self, good: Bools, place: Int64s | None = None) -> Elements:
        """The elements of some events, which move to these places."""
        kept = good[self.rows]
        rows = self.rows[kept]
        return Elements(self.encoded.filter(kept), rows if place is None else place[rows])
