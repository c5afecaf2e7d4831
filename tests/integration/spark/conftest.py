"""All tests of this folder run in one process: a session of Spark takes seconds to start."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The process in which `spark` of tests/conftest.py is started."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
