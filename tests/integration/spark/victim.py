"""A program that runs the stream, to be killed: `python victim.py LOG INDEX OUT MASTER TOKEN WAY`.

WAY is "on" (until it is killed), or "between": the driver kills itself, and all it has started,
after the sink has committed a batch and before Spark has.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from tamis.spark.runtime.sessions import session
from tamis.spark.stream.notification_sink import NotificationsDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class KillingDataSource(NotificationsDataSource):
    """Commits as it should, and takes the driver down before anybody hears of it."""

    @classmethod
    def name(cls) -> str:
        """As in `format(…)`."""
        return "tamis_killed"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802 - Spark's
        """The real writer, with another end."""
        real = super().streamWriter(schema, overwrite)
        real.__class__ = _killing(type(real), int(self.options["victim"]))
        return real


def _killing(real: type[Any], victim: int) -> type[Any]:
    class Killing(real):  # type: ignore[misc]
        def commit(self, messages: Sequence[Any], batch: int) -> None:
            super().commit(messages, batch)
            if batch > 0:
                os.killpg(victim, signal.SIGKILL)

    return Killing


def notifying(
    spark: SparkSession,
    log: str,
    index: str,
    out: str,
    most: int,
    sink: str = "tamis_notifications",
) -> DataStreamWriter:
    """The stream, to be started: always the same one, whichever session runs it."""
    options = {"index": index, "maxEventsPerTrigger": str(most), "partitions": "2"}
    options["name"] = "victim"
    stream: DataFrame = spark.readStream.format("tamis").options(**options).load(log)
    writer = stream.writeStream.option("checkpointLocation", str(Path(out) / "checkpoint"))
    return writer.format(sink)


def main(log: str, index: str, out: str, master: str, token: str, way: str) -> None:
    """Run it."""
    # Executors are started for a minute: see SPARK_SUBMIT_OPTS in conftest.py.
    java = os.environ.get("SPARK_SUBMIT_OPTS", "")
    config: dict[str, Any] = {
        "spark.ui.enabled": False,
        "spark.sql.shuffle.partitions": 2,
        "spark.executor.extraJavaOptions": f"-Dtamis.victim={token} {java}".strip(),
        "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": str(Path(out) / "warehouse"),
    }
    spark = session(master, **config)
    spark.dataSource.register(KillingDataSource)
    sink = KillingDataSource.name() if way == "between" else NotificationsDataSource.name()
    writer = notifying(spark, log, index, out, most=150, sink=sink)
    query = writer.option("victim", str(os.getpgid(0))).start(str(Path(out) / "found"))
    print("running", flush=True)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
