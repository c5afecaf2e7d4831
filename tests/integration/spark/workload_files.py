"""Workloads in parquet files, and the pairs that an engine finds in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis import Engine, Schema
from tamis.workload import auctions, dexin, gryphon, lesubscribe, topss
from tamis.workload.base import Workload
from tests.schemas import one_type

Rows = list[tuple[Any, ...]]

WORKLOADS: dict[str, Callable[[], Workload]] = {
    "LS": lambda: lesubscribe.make(1_000),
    "TO W4": lambda: topss.make(200, setting="W4"),
    "DX": lambda: dexin.make(3_000),
    "AG": lambda: gryphon.make(3_000),
    "auctions": lambda: auctions.make(1_000),
}
OFFERS = Schema.from_dict(
    one_type("offer", {"price": "decimal!", "tags": "text*", "seller.rating": "integer"})
)


def written(workload: Workload, folder: Path, events: int, files: int = 3) -> list[pa.Table]:
    """Files with row groups of several sizes; each event also has a number and a lot.

    Files of a sparse workload have different columns. The tables come back without the two.
    """
    folder.mkdir()
    tables, first = [], 0
    for file in range(files):
        table = workload.events(events // files, seed=file)
        numbers = range(first, first + table.num_rows)
        extended = table.append_column("event_id", pa.array(numbers, pa.int64()))
        extended = extended.append_column("lot", pa.array([f"e{number}" for number in numbers]))
        path = folder / f"{file}.parquet"
        parquet.write_table(extended, path, row_group_size=300 + 400 * file)
        tables.append(table)
        first += table.num_rows
    return tables


def expected(engine: Engine, tables: list[pa.Table]) -> Rows:
    """All pairs of the number of an event and the id of a subscription."""
    pairs: Rows = []
    first = 0
    for table in tables:
        found = engine.match_batch(table).to_arrow()
        events = (np.asarray(found["event"]) + first).tolist()
        pairs += zip(events, found["subscription"].to_pylist(), strict=True)
        first += table.num_rows
    return sorted(pairs)
