"""A log and an index, both empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.store import Log, Versions
from tests.unit.store.world import fresh


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return fresh(tmp_path)


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path / "index")


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that are complete with four packs."""
    monkeypatch.setattr("tamis.store.segment_files.MOST", 4)
