"""One Spark session for all tests of this folder: it takes seconds to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them in one process, so that there is one session."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, in which a task that fails is tried again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("TAMIS_COSTS", "usual")
        settings: dict[str, Any] = {
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "America/New_York",  # nobody's, so that it shows
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
        made = session("local[2,4]", **settings)
        yield made
        made.stop()
