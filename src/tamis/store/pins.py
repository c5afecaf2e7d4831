"""Pins: which version each batch of a stream was matched with.

    INDEX/pins/<query>.json    {"batches": {"7": 42, "8": 57}}, of its last batches

Spark runs a batch again when it was killed in the middle of it, and tries a task again that failed.
By then there may be a newer version; but a batch must be answered by one of them only. So the first
who asks writes down which, and all others go by that.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from tamis.errors import StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.sync import make_folder

PINS = "pins"
KEPT = 100  # batches of a query: as many as Spark keeps the offsets of, unless it is told otherwise
PATIENCE = 30 * 24 * 3600.0  # seconds for which the versions of a query that stands still are kept
_QUERY = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Pins:
    """The pins of one query."""

    def __init__(self, index: Path, query: str) -> None:
        if not _QUERY.fullmatch(query):
            raise StoreError(f"a query is known by letters, digits, '.', '-' or '_': {query!r}")
        self.path = index / PINS / f"{query}.json"

    def version(self, batch: int) -> int | None:
        """What a batch was matched with; None where nobody has said."""
        return _batches(self.path).get(batch) if self.path.exists() else None

    def put(self, batch: int, version: int, keep: int = KEPT) -> None:
        """Say it, on disk, and forget what is older than the last few batches.

        Nobody else may say anything meanwhile.
        """
        make_folder(self.path.parent)
        for left in self.path.parent.glob(f".{self.path.name}.*"):  # of somebody who died
            left.unlink(missing_ok=True)
        known = _batches(self.path) if self.path.exists() else {}
        known[batch] = version
        last = dict(sorted(known.items())[-max(1, keep) :])
        write_json(self.path, {"batches": {str(number): which for number, which in last.items()}})


def pinned(index: Path) -> set[int]:
    """All versions that a batch which is run again may ask for.

    A query that has not begun a batch for long is taken to be gone. Its pins stay, so that it is
    refused, should it come back in the middle of a batch, instead of answered by another version.
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
