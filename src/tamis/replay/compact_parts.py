"""`compact`: the small parts of many batches become a few large ones, under the eyes of readers.

A stream that is quick to notify writes a small file or two a second. Those of old batches are
written together into larger ones, and a manifest that names these takes the place of all the
manifests of those batches, in one rename. The last batches are left as they are: Spark may run one
of them again, and is then told by its manifest that it was written.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import StoreError
from tamis.files.lock import locked
from tamis.files.os_errors import os_errors_as
from tamis.replay.manifests import (
    BATCHES,
    LOCK,
    MANIFESTS,
    PATIENCE,
    manifests,
    put_merged,
    retire,
)
from tamis.replay.parts import DEAD, NOTIFICATIONS, PartWriter
from tamis.store.pins import KEPT

MANY = 100  # batches whose manifests are worth to be merged
WHOLE = 1 << 20  # rows: a part with as many is large enough


def compact(
    path: Path,
    *,
    keep: int = KEPT,
    many: int = MANY,
    whole: int = WHOLE,
    older: float = PATIENCE,
) -> int:
    """Merge the parts of old batches; gives how many manifests there are less.

    Args:
        path: the folder of notifications. A stream may write to it meanwhile, anybody may read it.
        keep: how many of the last batches of each query stay as they are.
        many: how many others there have to be, or nothing is done.
        whole: parts with so many rows are left as they are.
        older: after how many seconds files are removed whose place others have taken. Whoever has
            asked for their names by then has so long to read them.

    It may be killed at any moment. If somebody else is at it, nothing is done.
    """
    path = Path(path)
    with os_errors_as(StoreError, f"{path}: cannot be compacted"), ExitStack() as held:
        try:
            held.enter_context(locked(path / MANIFESTS / LOCK, wait=False))
        except (BlockingIOError, FileNotFoundError):
            return 0
        retire(path, older)
        by_query: dict[str, list[dict[str, Any]]] = {}
        for manifest in manifests(path):
            if manifest.get("query") is not None:  # that of a batch job is of a few large parts
                by_query.setdefault(manifest["query"], []).append(manifest)
        less = 0
        for query, found in by_query.items():
            old = sorted(found, key=lambda each: int(each["batch"]))[: -max(1, keep)]
            if sum(BATCHES not in each for each in old) >= max(2, many):
                put_merged(path, query, old, _merged(path, query, old, whole))
                less += len(old) - 1
        if less:
            retire(path, older)
        return less


class _Run(NamedTuple):
    """Parts that become one."""

    parts: list[dict[str, Any]]
    rows: int


def _merged(path: Path, query: str, old: list[dict[str, Any]], whole: int) -> list[dict[str, Any]]:
    """The parts of these manifests, small ones written together; those that are large stay."""
    parts: list[dict[str, Any]] = []
    for kind in (NOTIFICATIONS, DEAD):
        before = [part for each in old if BATCHES in each for part in _of(each, kind)]
        since = [part for each in old if BATCHES not in each for part in _of(each, kind)]
        for run in _runs(path / kind, before, since, whole):
            parts += run.parts if len(run.parts) == 1 else [_written(path / kind, query, run)]
    return parts


def _of(manifest: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for part in manifest["parts"] if part["folder"] == kind]


def _runs(
    folder: Path, before: list[dict[str, Any]], since: list[dict[str, Any]], whole: int
) -> list[_Run]:
    """What was merged before, and what has come since, as runs of the same columns.

    What was merged before is written again only with half as many rows or more beside it: a row is
    written a few times, however often this is done.
    """
    runs = [_Run([part], part["rows"]) for part in before]
    for _, group in groupby(since, lambda part: _columns(folder, part)):
        fresh: list[_Run] = []
        for part in group:
            rows = int(part["rows"])
            if fresh and fresh[-1].rows < whole and rows < whole:
                last = fresh.pop()
                fresh.append(_Run([*last.parts, part], last.rows + rows))
            else:
                fresh.append(_Run([part], rows))
        while runs and _joins(folder, runs[-1], fresh[0], whole):
            last = runs.pop()
            fresh[0] = _Run([*last.parts, *fresh[0].parts], last.rows + fresh[0].rows)
        runs += fresh
    return runs


def _joins(folder: Path, before: _Run, fresh: _Run, whole: int) -> bool:
    small = max(before.rows, fresh.rows) < whole and before.rows <= 2 * fresh.rows
    return small and _columns(folder, before.parts[-1]) == _columns(folder, fresh.parts[0])


def _columns(folder: Path, part: dict[str, Any]) -> list[tuple[str, pa.DataType, bool]]:
    schema = pq.read_schema(folder / part["name"])
    return [(field.name, field.type, field.nullable) for field in schema]


def _written(folder: Path, query: str, run: _Run) -> dict[str, Any]:
    made = PartWriter(folder, f"part-{query}-{uuid.uuid4().hex}.parquet", as_is=True)
    try:
        for part in run.parts:
            with pq.ParquetFile(folder / part["name"]) as file:
                made.write(file.read(use_threads=False).replace_schema_metadata(None))
        return made.close()
    except BaseException:
        made.discard()
        raise
