"""A session on a Spark Connect server that answers within seconds, or a plain refusal.

PySpark retries a server that is not there for more than ten minutes, and then shows gRPC's error.
"""

from __future__ import annotations

import os
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError
from tamis.spark.runtime.error_text import error_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = "sc://"
_WAIT = 5.0  # seconds that a server has to answer
_AWAY = 15.0  # seconds that a server may be away which has answered before


def connected(url: str, app: str, settings: dict[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    where = _reached(url)
    builder = SparkSession.builder.appName(app).remote(url)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        made = builder.getOrCreate()
        client: Any = made.client
        client.set_retry_policies([_patience()])
        made.version  # noqa: B018 - asks the server, which may be another kind of server
        return made
    except PySparkException as why:
        half = active()
        if half is not None:
            half.stop()
        raise SparkError(f"{where} gives no session: {error_text(why)}") from None


def active() -> SparkSession | None:
    """The Connect session of this process; that of another thread too."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession

    try:
        found: Any = SparkSession.active()
    except PySparkException:
        return None
    return found  # type: ignore[no-any-return]


def place(url: str) -> str:
    """The server of a URL, without parameters and with the port.

    >>> place("sc://localhost/;user_id=ann")
    'sc://localhost:15002'
    """
    return f"{SCHEME}{_channel(url).endpoint}"


def place_of(session: SparkSession) -> str | None:
    """The server of a session; None where it does not say."""
    try:
        client: Any = session.client
        return f"{SCHEME}{client._builder.endpoint}"
    except Exception:  # noqa: BLE001 - not of Connect, or on a channel that the user has made
        return None


def _reached(url: str) -> str:
    """The address of a server; refuses one that does not answer."""
    channel = _channel(url)
    grpc: Any = import_module("grpc")  # which has no types
    where = f"{SCHEME}{channel.endpoint}"
    tried: Any = channel.toChannel()
    try:
        grpc.channel_ready_future(tried).result(timeout=_WAIT)
    except grpc.FutureTimeoutError:
        raise SparkError(
            f"no Spark Connect server answers at {where}, for {_WAIT:.0f} seconds; is it running, "
            "and is the port its own? sbin/start-connect-server.sh of Spark starts one"
        ) from None
    finally:
        tried.close()
    return where


def _channel(url: str) -> Any:
    # Keeps gRPC from writing to the terminal.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder

        return DefaultChannelBuilder(url)
    except ImportError as why:
        raise SparkError(
            f"Spark Connect needs more than PySpark alone ({why}): pip install 'tamis[spark]'"
        ) from None
    except ValueError:  # PySpark's error is one as well, and shows another URL
        raise SparkError(
            f"{url}: is not the URL of a Spark Connect server, such as sc://host:port, or "
            "sc://host:port/;name=value;name=value with parameters"
        ) from None


def _patience() -> Any:
    """Retries as PySpark's, but for seconds in all.

    Later calls fail at once, so that a job whose server is gone ends soon.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class RetryFor(DefaultPolicy):
        """Counts the time from the first of several failures in close succession."""

        def __init__(self) -> None:
            super().__init__(max_backoff=2_000)  # milliseconds
            self._first = self._last = -_AWAY

        def can_retry(self, e: BaseException) -> bool:
            if not super().can_retry(e):
                return False
            now = monotonic()
            if now - self._last > _AWAY:  # it has answered meanwhile
                self._first = now
            self._last = now
            return now - self._first < _AWAY

    return RetryFor()
