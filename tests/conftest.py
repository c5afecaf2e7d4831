"""Real parts that some tests need. A test marked with a part is skipped where it is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests import postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.connect import Client, Server

# In CI the examples are the same on every run, so that no chance find stops somebody's work.
# A busy machine may be slow: no example has a deadline.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "desk")

# Parallel workers inherit the width of a terminal; the tests expect that of no terminal.
os.environ.pop("COLUMNS", None)

# The same plans on every machine, however busy it is.
os.environ.setdefault("TAMIS_COSTS", "usual")

# Tests read what a service says; a test of its JSON asks for it.
os.environ.setdefault("TAMIS_LOG_FORMAT", "text")

# A Java of the tests lives for minutes at most: one that compiles its own code in a hurry, and has
# no threads to collect garbage, starts a session with 6 s of processor time instead of 13.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


_SPARK = Path(__file__).parent / "integration" / "spark"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests with Spark run in one process, the one in which `spark` is started.

    The hook is here, not in their folder: there it would come after the one that looks for groups.
    The one that takes a server down, which all share, comes last.
    """
    for item in items:
        if _SPARK in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: "doomed" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """How to connect to a PostgreSQL that was started for this session."""
    bin = postgres.programs()
    if bin is None:
        missing = "there is no PostgreSQL server here; as root: apt-get install postgresql"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with postgres.server(bin) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, in which a task that fails is tried again.

    Whoever needs it is of the group `spark`, so that one process has it and no other starts one.
    """
    from tamis.spark.runtime.sessions import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        options: dict[str, Any] = {
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "America/New_York",  # nobody's, so that it shows
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
        made = session("local[2,4]", **options)
        yield made
        made.stop()


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Spark Connect server on two cores, for whoever is of the group `spark`."""
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")
    from tests.connect import Server

    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def client(connect: Server) -> Iterator[Client]:
    """A process with a session on that server."""
    from tests.connect import Client

    started = Client(connect.url)
    yield started
    started.stop()


@pytest.fixture
def doomed(connect: Server) -> Server:
    """That server, for the test that takes it down, which runs last."""
    return connect


@pytest.fixture(autouse=True)
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a marked test its part."""
    if request.node.get_closest_marker("postgresql"):
        monkeypatch.setenv("TAMIS_POSTGRESQL", request.getfixturevalue("postgresql"))
