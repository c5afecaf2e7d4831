"""Pins: the version with which each batch of a stream was matched.

    INDEX/pins/<query>.json    {"batches": {"7": 42, "8": 57}}, for its last batches

Spark runs a batch again after it was killed halfway, and retries a task that failed. By then there
may be a newer version, but all tasks of a batch must use the same one. So the first that asks
writes down which, and all others follow.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import chosen_name
from tamis.files.sync import make_folder

PINS = "pins"
KEPT = 100  # batches per query, as many as Spark keeps the offsets of by default
PATIENCE = 30 * 24 * 3600.0  # seconds for which the versions of an idle query are kept


class Pins:
    """The pins of one query."""

    def __init__(self, index: Path, query: str) -> None:
        self.path = index / PINS / f"{chosen_name(query, 'a query', StoreError)}.json"

    def version(self, batch: int) -> int | None:
        """Return the version of a batch; None if it has no pin yet."""
        return _batches(self.path).get(batch) if self.path.exists() else None

    def put(self, batch: int, version: int, keep: int = KEPT) -> None:
        """Pin a batch to a version, on disk, and drop all but the last `keep` pins.

        The caller holds the lock of the index.
        """
        make_folder(self.path.parent)
        for left in self.path.parent.glob(f".{self.path.name}.*"):  # by a process that was killed
            left.unlink(missing_ok=True)
        known = _batches(self.path) if self.path.exists() else {}
        known[batch] = version
        last = dict(sorted(known.items())[-max(1, keep) :])
        write_json(self.path, {"batches": {str(number): which for number, which in last.items()}})


def pinned(index: Path) -> set[int]:
    """Return all versions that a batch may need when it runs again.

    A query that has not begun a batch for long counts as gone. Its pins stay: should it come back
    in the middle of a batch, it is refused instead of matched with another version.
    """
    found: set[int] = set()
    for path in (index / PINS).glob("*.json"):
        if not path.name.startswith(".") and time.time() - path.stat().st_mtime < PATIENCE:
            found.update(_batches(path).values())
    return found


def _batches(path: Path) -> dict[int, int]:
    batches: Any = read_json(path, "the pins of a query", StoreError).get("batches")
    try:
        return {int(number): int(version) for number, version in batches.items()}
    except (AttributeError, TypeError, ValueError):
        raise StoreError(
            f"{path}: is damaged, it does not say which batch had which version"
        ) from None
