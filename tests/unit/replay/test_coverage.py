"""What a folder of notifications covers, while others write to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.replay import coverage as looked_at
from tamis.replay.compact_parts import compact
from tamis.replay.manifests import counting_manifests


def _write(files: NotificationFiles, start: int) -> None:
    pairs = NotificationPairs(start, start + 1, np.array([start]), pa.array([7]))
    files.write("q", start, start + 1, [pairs], [])


@pytest.mark.parametrize("meanwhile", ["a batch", "a merge"])
def test_what_is_committed_during_a_look_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Else a reader would see a gap that does not exist, and skip what is in it."""
    files = NotificationFiles(tmp_path, pa.int64())
    for start in range(6):
        _write(files, start)
    end = 7 if meanwhile == "a batch" else 6

    def then(folder: Path) -> dict[str, dict[str, Any]]:
        if meanwhile == "a batch":
            _write(files, 6)
        else:
            assert compact(folder, keep=2, many=2)
        return counting_manifests(folder)

    with monkeypatch.context() as during:
        during.setattr(looked_at, "counting_manifests", then)
        found = looked_at.coverage(tmp_path, 0)
    assert (found.begin, found.end, found.lost) == (0, end, [])
    files.load()
    assert [n for pairs in files.read(-1, end) for n in pairs.numbers] == list(range(end))
