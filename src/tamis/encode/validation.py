"""Validation of a table row by row: the valid events, and the reason for each refused row.

`events_from_arrow` refuses a whole table for one bad row, which is right for a publisher who waits
for a reply. A pipeline goes on with the valid rows and sets the others aside. If all rows are
valid, nothing is done row by row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import as_table, encode, refusals
from tamis.encode.encoder import Encoder


class Refused(NamedTuple):
    """A refused row, and the reason."""

    row: int
    reason: str


class ValidatedTable(NamedTuple):
    """A validated table: `good` has the valid `rows`, in order; `refused` has the others."""

    good: pa.Table
    rows: NDArray[np.int64]
    refused: list[Refused]


def validate(encoder: Encoder, table: Any) -> ValidatedTable:
    """Separate the consistent events of a table from the rest (domains, and rules R1 to R3).

    Raises an `EventError` only if the table as a whole is wrong: if it is not a table, or has two
    columns with one name.
    """
    table = as_table(table)
    every = np.arange(table.num_rows, dtype=np.int64)
    refused = [Refused(row, str(why)) for row, why in refusals(encoder, encode(encoder, table))]
    if not refused:
        return ValidatedTable(table, every, refused)
    good = np.ones(len(every), np.bool_)
    good[[row for row, _ in refused]] = False
    return ValidatedTable(table.filter(pa.array(good)), every[good], refused)
