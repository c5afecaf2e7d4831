"""Manifests: which parts of a folder of notifications count.

    OUT/manifests/<query>-<batch>-<offset>.json    the parts of one batch
    OUT/manifests/<query>-<batch>-merged.json      the parts of all batches up to this one

A manifest appears by one rename, and never changes. A merged manifest replaces those of its batches
in the moment in which it appears: they do not count any more, whether they are still there or not.
They are removed later, when no reader needs them.
"""

from __future__ import annotations

import glob
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.files.json_document import check_format, read_object, write_json
from tamis.files.lock import locked
from tamis.files.names import names_in, own_files, plain_name
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder
from tamis.model.domain import show
from tamis.replay.parts import DEAD, NOTIFICATIONS

MANIFESTS = "manifests"
BATCHES = "batches"  # how many a merged manifest stands for
COVERS = "covers"  # the rows of a log whose notifications it has: {"start": …, "end": …}
LOCK = "compact.lock"  # among the manifests: held while some are merged or removed
PATIENCE = 3600.0  # seconds that readers have to read the parts they have found
_FORMAT = 2
_ENDING = "-merged.json"
_OF_MANY = re.compile(r"(.*)-(\d{10})-merged\.json")
_ATTEMPTS = 100


def manifests(path: Path) -> list[dict[str, Any]]:
    """All manifests of a folder that count, in the order in which they were written."""
    return sorted(counting_manifests(path).values(), key=lambda each: float(each["written"]))


def counting_manifests(path: Path) -> dict[str, dict[str, Any]]:
    """All manifests of a folder that count, by file name."""
    return _counting(list_manifests(path))


def list_manifests(path: Path) -> dict[str, dict[str, Any]]:
    """All manifests by file name, also those that do not count any more.

    If some are merged while this lists them, it lists again.
    """
    folder = path / MANIFESTS
    for _ in range(_ATTEMPTS):
        names = _names(folder)
        with suppress(FileNotFoundError):
            found = {name: _read(folder / name) for name in names}
            if not any(name.endswith(_ENDING) for name in _names(folder) - names):
                return found
    raise StoreError(f"{folder}: changes too fast to be read; some process removes files")


def last_merged(path: Path, query: str) -> int:
    """The last batch of a query that was merged; -1 if none was."""
    found = map(_OF_MANY.fullmatch, _names(path / MANIFESTS))
    return max((int(each[2]) for each in found if each and each[1] == query), default=-1)


def ends_elsewhere(path: Path, query: str, batch: int, name: str) -> bool:
    """Whether a batch has a manifest with another offset than that of this name."""
    alike, found = f"{query}-{batch:010d}-", _names(path / MANIFESTS) - {f"{name}.json"}
    return any(each.startswith(alike) and not each.endswith(_ENDING) for each in found)


def put(
    path: Path, name: str, facts: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]
) -> bool:
    """Commit parts: the manifest is on disk when this returns. False if it existed before."""
    folder = path / MANIFESTS
    make_folder(folder)
    manifest = folder / f"{name}.json"
    if manifest.exists():
        return False
    counts = {
        kind: sum(int(part["rows"]) for part in parts if part["folder"] == kind)
        for kind in (NOTIFICATIONS, DEAD)
    }
    written = {"written": time.time(), **facts}
    document = {"format": _FORMAT, **written, **counts, "parts": [dict(part) for part in parts]}
    sync_folder(path)  # a killed task may have made the folder of its part, and not synced it
    with os_errors_as(StoreError, f"{manifest}: cannot be written", unchanged=False):
        write_json(manifest, document, indent=None)
    return True


def commit_merged(
    path: Path, query: str, merged: Sequence[dict[str, Any]], parts: Sequence[Mapping[str, Any]]
) -> None:
    """Commit a manifest that replaces the first manifests of a query."""
    last = max(merged, key=_batch)
    facts = {
        "query": query,
        "batch": last["batch"],
        BATCHES: sum(int(each.get(BATCHES, 1)) for each in merged),
        "offsets": last["offsets"],
        "written": last["written"],
    }
    if all(COVERS in each for each in merged):
        ends = [(each[COVERS]["start"], each[COVERS]["end"]) for each in merged]
        facts[COVERS] = {"start": min(ends)[0], "end": max(ends)[1]}
    put(path, f"{query}-{_batch(last):010d}-merged", facts, parts)


def retire(path: Path, older: float = PATIENCE) -> int:
    """Remove what a merged manifest has replaced so many seconds ago; how many parts.

    Manifests go first, then the parts that none names any more, so that it may be killed at any
    time. A stream may merge more often than every `older` seconds; then the newest merged manifest
    is always young, and an older one says how long its batches have been replaced.
    """
    folder, found = path / MANIFESTS, list_manifests(path)
    counting = _counting(found)
    now = time.time()
    # By query, the last batch whose readers are done.
    settled = _last_batches(
        each
        for name, each in found.items()
        if BATCHES in each and now - (folder / name).stat().st_mtime >= older
    )

    def replaced(manifest: dict[str, Any]) -> bool:
        last = settled.get(manifest["query"], -1)
        # A merged manifest is replaced by the next one, not by itself.
        return _batch(manifest) < last + (BATCHES not in manifest)

    gone = [name for name, each in found.items() if name not in counting and replaced(each)]
    if not gone:
        return 0
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
    left = named(each for name, each in found.items() if name not in gone)
    parts = named(found[name] for name in gone) - left
    for kind, name in parts:
        for part in own_files(path / kind, glob.escape(name)):
            part.unlink(missing_ok=True)
    return len(parts)


def sweep(path: Path, older: float = PATIENCE, *, query: str | None = None) -> list[Path]:
    """Remove files that do not count and are older than so many seconds; gives the parts.

    These are parts without a manifest, manifests that were replaced, and unfinished ones of killed
    processes. Younger files may belong to a running batch. With a `query`, only its files go: other
    jobs may be running in the same folder.
    """
    now, own = time.time(), "" if query is None else glob.escape(f"{query}-")
    with ExitStack() as held:
        if (path / MANIFESTS).is_dir():
            held.enter_context(locked(path / MANIFESTS / LOCK))
            retire(path, older)
        for left in own_files(path / MANIFESTS, f".{own}*"):
            if now - left.lstat().st_mtime >= older:
                left.unlink(missing_ok=True)
        counting, removed = named(list_manifests(path).values()), []
        for folder in (NOTIFICATIONS, DEAD):
            for each in own_files(path / folder, f"part-{own}*.parquet"):
                if (folder, each.name) not in counting and now - each.lstat().st_mtime >= older:
                    each.unlink(missing_ok=True)
                    removed.append(each)
    return removed


def named(found: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """The parts that manifests name, by folder and file name."""
    return {(part["folder"], part["name"]) for manifest in found for part in manifest["parts"]}


def _counting(found: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    last = _last_batches(each for each in found.values() if BATCHES in each)

    def counts(manifest: dict[str, Any]) -> bool:
        query = manifest.get("query")
        if query not in last or _batch(manifest) > last[query]:
            return True
        return BATCHES in manifest and _batch(manifest) == last[query]

    return {name: manifest for name, manifest in found.items() if counts(manifest)}


def _last_batches(found: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The last batch of each query."""
    return {each["query"]: _batch(each) for each in sorted(found, key=_batch)}


def _batch(manifest: Mapping[str, Any]) -> int:
    return int(manifest["batch"])


def _read(path: Path) -> dict[str, Any]:
    manifest = read_object(path, StoreError)
    check_format(path, manifest.get("format", 1), _FORMAT, StoreError)
    forms: dict[str, Any] = {"query": (str, type(None)), "written": (int, float), "parts": list}
    if manifest.get("query") is not None:  # it was written by a stream
        forms["batch"] = int
    for name, form in forms.items():
        if name not in manifest or not isinstance(manifest[name], form):
            raise StoreError(f"{path}: is damaged, it lacks {name!r}")
    if manifest["query"] is not None:  # it becomes a part of file names
        plain_name(manifest["query"], f"{path}: is damaged, the query", StoreError)
    for part in manifest["parts"]:
        if not isinstance(part, dict) or not isinstance(part.get("rows"), int):
            raise StoreError(f"{path}: is damaged, a part lacks 'rows'")
        if part.get("folder") not in (NOTIFICATIONS, DEAD):
            shown = show(part.get("folder"))
            raise StoreError(
                f"{path}: is damaged, a part lies in {shown}, not in {NOTIFICATIONS} or {DEAD}"
            )
        plain_name(part.get("name"), f"{path}: is damaged, a part", StoreError)
    return manifest


def _names(folder: Path) -> set[str]:
    try:
        names = names_in(folder)
    except FileNotFoundError:
        return set()
    return {name for name in names if name.endswith(".json") and not name.startswith(".")}
