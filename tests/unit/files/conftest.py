"""A small saved index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.files.saved_index import made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "index")
