"""Which rows of a log have their notifications in a folder, by its manifests.

Each manifest covers the sequence numbers from `start` to before `end`, and the next one goes on
from there. Notifications are a function of the log. So what is missing is matched again, and what
comes after a gap does not count: the matcher goes on from the gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import StoreError
from tamis.files.names import names_in
from tamis.files.sync import sync_folder
from tamis.replay.manifests import COVERS, MANIFESTS, counting_manifests
from tamis.replay.parts import DEAD, NOTIFICATIONS


class CoveredRange(NamedTuple):
    """What a manifest covers."""

    start: int
    end: int
    manifest: str  # the name of its file
    parts: tuple[str, ...]  # of notifications


class Coverage(NamedTuple):
    """The rows whose notifications are there, without gaps."""

    ranges: list[CoveredRange]
    lost: list[str]  # manifests that do not count: parts of them, or rows before them, are missing

    @property
    def begin(self) -> int:
        """The first sequence number whose notifications are kept."""
        return self.ranges[0].start if self.ranges else 0

    @property
    def end(self) -> int:
        """Notifications of all events from `begin` to before this number are there."""
        return self.ranges[-1].end if self.ranges else 0


def coverage(folder: Path, begin: int) -> Coverage:
    """What a folder of notifications covers, of a log that keeps its rows from `begin` on.

    A gap before `begin` cannot be filled any more: what is kept begins after it.
    """
    found = counting_manifests(folder)
    # Parts are listed after manifests: those of a manifest that appears meanwhile are there.
    there = {kind: _names(folder / kind) for kind in (NOTIFICATIONS, DEAD)}
    ranges = sorted(covered_range(folder, name, each) for name, each in found.items())
    kept: list[CoveredRange] = []
    for at, each in enumerate(ranges):
        if kept and each.start < kept[-1].end:
            raise StoreError(
                f"{folder}: {kept[-1].manifest} and {each.manifest} both have notifications of "
                f"{each.start:,}; move the folder away: it is built again from the log"
            )
        whole = all(part["name"] in there[part["folder"]] for part in found[each.manifest]["parts"])
        follows = not kept or each.start == kept[-1].end
        if whole and (follows or each.start <= begin):
            kept = [*kept, each] if follows else [each]
        elif each.end <= begin:
            kept = []
        else:
            return Coverage(kept, [left.manifest for left in ranges[at:]])
    return Coverage(kept, [])


def covered_range(folder: Path, name: str, manifest: Mapping[str, Any]) -> CoveredRange:
    """What a manifest covers; raises `StoreError` if it was not written for a data folder."""
    try:
        covers = manifest[COVERS] if COVERS in manifest else manifest["offsets"][0]
        start, end = int(covers["start"]), int(covers["end"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise StoreError(
            f"{folder / MANIFESTS / name}: does not say which rows of the log it covers; it was "
            "not written for this service: move it away"
        ) from None
    parts = (each["name"] for each in manifest["parts"] if each["folder"] == NOTIFICATIONS)
    return CoveredRange(start, end, name, tuple(parts))


def drop_lost(folder: Path, begin: int) -> Coverage:
    """Remove manifests that do not count, and return what is covered then."""
    found = coverage(folder, begin)
    while found.lost:
        for name in found.lost:
            (folder / MANIFESTS / name).unlink(missing_ok=True)
        sync_folder(folder / MANIFESTS)
        found = coverage(folder, begin)  # older ones, which were merged, may count again
    return found


def _names(folder: Path) -> set[str]:
    try:
        return names_in(folder)
    except FileNotFoundError:
        return set()
