"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli import lots


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with a schema, subscriptions and events."""
    lots.write(tmp_path)
    return tmp_path
