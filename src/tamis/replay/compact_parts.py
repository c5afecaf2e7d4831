"""`compact`: merges the small parts of many batches into a few large ones, while others read.

A stream with low latency writes a small file or two a second. Parts of old batches are merged into
larger ones, and one manifest that names these replaces the manifests of those batches, in one
rename. The last batches stay as they are: Spark may run one of them again, and finds its manifest.
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
    commit_merged,
    manifests,
    retire,
)
from tamis.replay.parts import DEAD, NOTIFICATIONS, PartWriter, read_part
from tamis.store.versions import KEPT

MANY = 100  # batches that are worth merging
WHOLE = 1 << 20  # rows: a part with as many is large enough


def compact(
    path: Path,
    *,
    keep: int = KEPT,
    many: int = MANY,
    whole: int = WHOLE,
    older: float = PATIENCE,
) -> int:
    """Merge the parts of old batches; gives by how many manifests there are fewer.

    Args:
        path: the folder of notifications. A stream may write to it meanwhile, others may read it.
        keep: how many of the last batches of each query stay as they are.
        many: how many older batches are needed, or nothing is done.
        whole: parts with so many rows stay as they are.
        older: after how many seconds replaced files are removed. Readers have so long to read the
            parts they have found.

    It may be killed at any moment. If another process is compacting, nothing is done.
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
            if manifest.get("query") is not None:  # a batch job has a few large parts
                by_query.setdefault(manifest["query"], []).append(manifest)
        less = 0
        for query, found in by_query.items():
            old = sorted(found, key=lambda each: int(each["batch"]))[: -max(1, keep)]
            if sum(BATCHES not in each for each in old) >= max(2, many):
                commit_merged(path, query, old, _merged(path, query, old, whole))
                less += len(old) - 1
        if less:
            retire(path, older)
        return less


class _PartRun(NamedTuple):
    """Parts that are merged into one."""

    parts: list[dict[str, Any]]
    rows: int


def _merged(path: Path, query: str, old: list[dict[str, Any]], whole: int) -> list[dict[str, Any]]:
    """The parts of these manifests, small ones merged."""
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
) -> list[_PartRun]:
    """Merged parts and new ones, as runs of the same columns.

    A merged part is written again only together with half as many rows or more, so that a row is
    written a few times, however often this runs.
    """
    runs = [_PartRun([part], part["rows"]) for part in before]
    for _, group in groupby(since, lambda part: _columns(folder, part)):
        fresh: list[_PartRun] = []
        for part in group:
            rows = int(part["rows"])
            if fresh and fresh[-1].rows < whole and rows < whole:
                last = fresh.pop()
                fresh.append(_PartRun([*last.parts, part], last.rows + rows))
            else:
                fresh.append(_PartRun([part], rows))
        while runs and _joins(folder, runs[-1], fresh[0], whole):
            last = runs.pop()
            fresh[0] = _PartRun([*last.parts, *fresh[0].parts], last.rows + fresh[0].rows)
        runs += fresh
    return runs


def _joins(folder: Path, before: _PartRun, fresh: _PartRun, whole: int) -> bool:
    small = max(before.rows, fresh.rows) < whole and before.rows <= 2 * fresh.rows
    return small and _columns(folder, before.parts[-1]) == _columns(folder, fresh.parts[0])


def _columns(folder: Path, part: dict[str, Any]) -> list[tuple[str, pa.DataType, bool]]:
    schema = pq.read_schema(folder / part["name"])
    return [(field.name, field.type, field.nullable) for field in schema]


def _written(folder: Path, query: str, run: _PartRun) -> dict[str, Any]:
    made = PartWriter(folder, f"part-{query}-{uuid.uuid4().hex}.parquet", as_is=True)
    try:
        for part in run.parts:
            table = read_part(folder / part["name"], use_threads=False)
            made.write(table.replace_schema_metadata(None))
        return made.close()
    except BaseException:
        made.discard()
        raise
