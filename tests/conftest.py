"""Real parts that some tests need. A test marked with a part is skipped where it is missing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests import postgres
from tests.warm_workers import warm_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.connect import Client, Server

# In CI the examples are the same on every run, so that no chance find stops somebody's work.
# A busy machine may be slow: no example has a deadline.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "desk")

# A shell that starts tests in the background may make them ignore Ctrl-C. Every process they start
# would inherit that, and those that they interrupt would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Parallel workers inherit the width of a terminal; the tests expect that of no terminal.
os.environ.pop("COLUMNS", None)

# The same plans on every machine, however busy it is.
os.environ.setdefault("TAMIS_COSTS", "usual")
# NumPy in place of a GPU. With TAMIS_GPU=0, all tests of tamis-gpu run on the first GPU.
os.environ.setdefault("TAMIS_GPU", "simulated")

# Tests read what a service says; a test of its JSON asks for it.
os.environ.setdefault("TAMIS_LOG_FORMAT", "text")

# The same matcher in all services from their start on, whatever is compiled by then.
os.environ.setdefault("TAMIS_QUICK_START", "false")

# A Java of the tests lives for minutes at most: one that compiles its own code in a hurry, and has
# no threads to collect garbage, starts a session with 6 s of processor time instead of 13.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


_TESTS = Path(__file__).parent
# Tests with Spark that start processes of their own, and wait for them.
_WAITING = {"test_demo.py", "test_job_kills.py", "test_kills.py", "test_power_loss.py"}
# Tests that run streams, one after the other, and wait for their batches.
_STREAMS = {
    "test_batch_versions.py",
    "test_compacted.py",
    "test_constructs.py",
    "test_damage.py",
    "test_growing_log.py",
    "test_readers.py",
    "test_stream.py",
    "test_switch.py",
}


def _group(item: pytest.Item) -> str | None:
    """The name of the tests that run in one process, because they share what is slow to start."""
    fixtures = getattr(item, "fixturenames", ())
    folder = item.path.parent.relative_to(_TESTS).as_posix()
    match folder:
        case "integration/spark" if "connect" in fixtures or item.path.name in _WAITING:
            return "spark-waiting"  # several sessions are better than a processor that waits
        case "integration/spark" if "spark" in fixtures and item.path.name in _STREAMS:
            return "spark-streams"
        case "integration/spark" if "spark" in fixtures:
            return "spark"
        case "integration/service":
            return item.path.stem  # a server
        case "integration/console":
            return folder  # a server and a browser
        case "faults":
            return folder  # a starter of servers
    return None


def _order(item: pytest.Item) -> tuple[int, bool]:
    """The longest groups first. The test that takes a server down, which others use, last."""
    mark = item.get_closest_marker("xdist_group")
    first = ("spark", "spark-streams", "spark-waiting", "kafka")
    rank = first.index(mark.args[0]) if mark and mark.args[0] in first else len(first)
    return rank, "doomed" in getattr(item, "fixturenames", ())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group and order the tests for `--dist loadgroup --no-loadscope-reorder`.

    The hook is here, not in their folders: there it would come after the one that looks for groups.
    """
    for item in items:
        group = _group(item)
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_order)


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

    Whoever needs it is of a group of `_group`, so that three processes have one and no other does.
    """
    from tamis.spark.runtime.sessions import session

    options: dict[str, Any] = {
        "spark.ui.enabled": False,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "America/New_York",  # nobody's, so that it shows
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(warm_python(tmp_path_factory.mktemp("python"))))
        made = session("local[2,4]", **options)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Spark Connect server on two cores, in one process, see `_group`."""
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
def _compiler_lock() -> Iterator[None]:
    """Tests that interrupt at any bytecode may interrupt the compiler, which then keeps its lock.

    Threads of a later test would wait for it for ever.
    """
    yield
    module = sys.modules.get("numba.core.compiler_lock")
    lock = None if module is None else module.global_compiler_lock._lock
    while lock is not None and lock._is_owned():
        lock.release()


@pytest.fixture(autouse=True)
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a marked test its part."""
    if request.node.get_closest_marker("postgresql"):
        monkeypatch.setenv("TAMIS_POSTGRESQL", request.getfixturevalue("postgresql"))
