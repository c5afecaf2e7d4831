"""Subscribing a table in which some conditions may be wrong."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from tamis.engine import Engine
from tamis.errors import TamisError

_AT_ONCE = 10_000  # rows: one that is wrong costs the others of its batch a second try


class RefusedCondition(NamedTuple):
    """A row whose condition was refused."""

    row: int
    reason: str


def subscribe_rows(engine: Engine, table: pa.Table) -> list[RefusedCondition]:
    """Subscribe all rows of a table of `id` and `condition`, and give those that are refused.

    A batch is taken whole or not at all. So one with a mistake is halved until that is alone: the
    other rows cost a few tries, not one for each row.
    """
    refused: list[RefusedCondition] = []
    todo = [(at, min(_AT_ONCE, table.num_rows - at)) for at in range(0, table.num_rows, _AT_ONCE)]
    todo.reverse()
    while todo:
        at, rows = todo.pop()
        try:
            engine.subscribe_table(table.slice(at, rows))
        except TamisError as why:
            if rows == 1:
                # Its row in a table that it is alone in says nothing.
                refused.append(RefusedCondition(at, str(why).removeprefix("row 0: ")))
            else:
                half = rows // 2
                todo += [(at + half, rows - half), (at, half)]
    return refused
