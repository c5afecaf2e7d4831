"""A folder of notifications with batches that were written by hand, and what should be in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.replay.manifests import manifests
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.spark.stream.notification_sink import WrittenParts, commit

Row = tuple[int, int]


class Out:
    """A folder of notifications, and what should be in it."""

    def __init__(self, path: Path, rows: int = 3) -> None:
        self.path, self._each = path, rows
        self.rows: set[Row] = set()
        self.dead: set[int] = set()

    def batch(self, number: int, query: str = "q", kept: bool = False) -> bool:
        """Commit a batch, as the sink does; whether it was written."""
        first = number * 100
        rows = [(first + at, at % 7) for at in range(self._each)]
        columns: dict[str, list[Any]] = {"subscription": [id for _, id in rows]}
        if kept:
            columns["price"] = [1.5] * len(rows)
        parts = [self._part(NOTIFICATIONS, columns, first)]
        if number % 2:
            parts.append(self._part(DEAD, {"reason": ["bad"]}, first + 90))
            self.dead.add(first + 90)
        self.rows |= set(rows)
        facts = {"query": query, "batch": number, "offsets": [{"sequence": first, "version": 3}]}
        commit(self.path, f"{query}-{number:010d}-{number:x}", facts, [WrittenParts(parts)])
        return all((self.path / part["folder"] / part["name"]).exists() for part in parts)

    def _part(self, folder: str, columns: dict[str, list[Any]], first: int) -> dict[str, Any]:
        count = len(next(iter(columns.values())))
        table = pa.table({"sequence": list(range(first, first + count)), **columns})
        name = f"part-{os.urandom(8).hex()}.parquet"
        (self.path / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.path / folder / name)
        return {"folder": folder, "name": name, "rows": count}

    def batches(self, *numbers: int) -> None:
        for number in numbers:
            assert self.batch(number)

    def read(self, kind: str = NOTIFICATIONS) -> list[Row]:
        """All rows that count, as a reader finds them."""
        found = []
        for manifest in manifests(self.path):
            for part in manifest["parts"]:
                if part["folder"] == kind:
                    table = pq.read_table(self.path / kind / part["name"])
                    second = table.column(1).to_pylist()
                    found += list(zip(table["sequence"].to_pylist(), second, strict=True))
        return found

    def check(self) -> None:
        """Everything once."""
        assert sorted(self.read()) == sorted(self.rows)
        assert sorted(number for number, _ in self.read(DEAD)) == sorted(self.dead)
        found = manifests(self.path)
        assert sum(each["notifications"] for each in found) == len(self.rows)
        assert sum(each["dead"] for each in found) == len(self.dead)

    def files(self, kind: str = NOTIFICATIONS) -> int:
        return len(list((self.path / kind).iterdir()))
