"""The library that records what programs do to files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.power_loss.disk import build_recorder


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return build_recorder(tmp_path_factory.mktemp("recorder"))
