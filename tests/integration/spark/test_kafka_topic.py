"""`tamis spark run --kafka-out`: files and a topic have the same notifications, through a kill.

`TAMIS_KAFKA=1` asks for it: it starts Spark twice beside a broker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis.replay.manifests import manifests
from tamis.replay.notification_id import notification_id
from tamis.replay.parts import NOTIFICATIONS
from tamis.spark.runtime.java import java_home
from tamis.store import Log, changes
from tests import kafka
from tests.integration.test_kafka_out import by_key

pytestmark = pytest.mark.skipif(
    not os.environ.get("TAMIS_KAFKA"), reason="TAMIS_KAFKA=1 starts Spark beside a broker"
)


def test_a_killed_stream_sends_the_rest(tmp_path: Path) -> None:
    from pyarrow import parquet

    log = Log.create(tmp_path / "log", {"attributes": {"price": "decimal"}}, ids="int64")
    log.change(changes.subscribe([1, 2, 3], ["price < 20", "price < 50", "price >= 20"]))
    with kafka.server() as server:
        kafka.create_topic(server.address, "found")
        folders = [f"--{name}={tmp_path / name}" for name in ("log", "index", "out")]
        command = [
            *(sys.executable, "-m", "tamis.cli.main", "spark", "run", *folders),
            *("--columns", "price", "--kafka-out", f"{server.address}/found"),
            *("--max-events", "200"),
        ]
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        for part in range(10):
            log.publish({"price": [float((7 * at + part) % 100) for at in range(200)]})
        running = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        until = time.monotonic() + 180
        while len(kafka.messages(server.address, "found")) < 300 and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        log.publish({"price": [1.0] * 50})
        subprocess.run(
            [*command, "--trigger", "available-now"],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=300,
        )
        rows = [
            row
            for each in manifests(tmp_path / "out")
            for made in each["parts"]
            if made["folder"] == NOTIFICATIONS
            for row in parquet.read_table(
                tmp_path / "out" / NOTIFICATIONS / made["name"]
            ).to_pylist()
        ]
        found = kafka.messages(server.address, "found", len(rows))
    pairs = [(row["sequence"], row["subscription"]) for row in rows]
    assert len(pairs) == len(set(pairs)) > 2050, "files have each pair once"
    identity = str(log.identity)
    assert {each.id for each in found} == {notification_id(identity, *pair) for pair in pairs}
    for mine in by_key(found).values():
        numbers = [each.value["sequence"] for each in mine]
        assert numbers == sorted(numbers)
    prices = {(row["sequence"], row["subscription"]): row["price"] for row in rows}
    for each in found:
        pair = each.value["sequence"], each.value["subscription"]
        assert each.value["event"] == {"price": prices[pair]}
