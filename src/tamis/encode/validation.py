"""Sifting a table: the events apart from the rows that are none, each of those with its reason.

`events_from_arrow` refuses a whole table for one bad row, which is right for a publisher who waits
for an answer. A pipeline has nobody to answer to: it goes on with the good ones and puts the others
aside. Where all rows are good nothing is done row by row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import as_table, encode, refusals
from tamis.encode.encoder import Encoder


class Refused(NamedTuple):
    """A row that is no event, and what an event like it is refused with."""

    row: int
    reason: str


class ValidatedTable(NamedTuple):
    """A table, parted: `good` are its rows `rows`, in their order; `refused` are the others."""

    good: pa.Table
    rows: NDArray[np.int64]
    refused: list[Refused]


def validate(encoder: Encoder, table: Any) -> ValidatedTable:
    """Part the consistent events of a table from the rest (domains, and rules R1 to R3).

    An `EventError` is left for what is wrong with the table as a whole: that it is none, or that
    two of its columns have one name.
    """
    table = as_table(table)
    every = np.arange(table.num_rows, dtype=np.int64)
    refused = [Refused(row, str(why)) for row, why in refusals(encoder, encode(encoder, table))]
    if not refused:
        return ValidatedTable(table, every, refused)
    good = np.ones(len(every), np.bool_)
    good[[row for row, _ in refused]] = False
    return ValidatedTable(table.filter(pa.array(good)), every[good], refused)
