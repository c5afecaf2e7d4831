"""The databases that stand in for Kdb: DuckDB in this process, PostgreSQL as a server."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from tamis.errors import MatcherError, TamisError
from tamis.lab.experiments.experiment import Curve, LabStep, Observation
from tamis.lab.instruments.matcher_runs import MatcherRuns
from tamis.lab.instruments.postgres_server import running_server, server_programs
from tamis.lab.papers.topss.setting import GROUPING, POSTGRESQL, SEQUENTIAL
from tamis.match.topss.sql.database import DSN


def matcher_of(curve: Curve) -> str:
    """The matcher of a curve. The name of a curve in a database ends with the database."""
    for name in (GROUPING, SEQUENTIAL):
        if curve.name.startswith(name):
            return name
    return curve.name


def observe_connected(runs: MatcherRuns, step: LabStep, curve: Curve, matcher: str) -> Observation:
    """Measure a curve that may need a database; without the database, it is a refusal."""
    try:
        with connected(curve):
            return runs.observe(step, curve, matcher)
    except MatcherError as why:
        return step.observation(curve, refusal=str(why))


@contextmanager
def connected(curve: Curve) -> Iterator[None]:
    """Within the block, a matcher of the curve finds its database.

    If a curve needs PostgreSQL and the environment names no server, one is started. It ends with
    this process. Raises a `MatcherError` where no server is installed.
    """
    if curve.options.get("database") != POSTGRESQL or os.environ.get(DSN):
        yield
        return
    # The variable and not an option: options are stored with the results, a folder must not be.
    os.environ[DSN] = _own_server()
    try:
        yield
    finally:
        del os.environ[DSN]


@cache
def _own_server() -> str:
    bin = server_programs()
    if bin is None:
        raise MatcherError(
            f"no PostgreSQL server is installed here, and {DSN} does not name one; on Debian, "
            "apt-get install postgresql"
        )
    stack = ExitStack()
    atexit.register(stack.close)
    try:
        return stack.enter_context(running_server(bin))
    except (TamisError, OSError, KeyError) as why:  # the last: the account of the server is missing
        raise MatcherError(f"PostgreSQL does not start here: {why}") from None
