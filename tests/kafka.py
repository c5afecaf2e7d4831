"""A Kafka broker of the tests' own, and Spark's connector to it, both fetched by Maven."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.replay.topic_producer import ID_HEADER
from tamis.spark.runtime.java import java_home
from tests.maven import FetchError, fetched, run, unfetchable

_JARS = "kafka"  # their folder
_SPARK, _KAFKA = "org.apache.spark", "org.apache.kafka"
_BROKER = (f"{_KAFKA}:kafka_2.13:4.1.0",)
# For a Spark without a connector of its own version: parts of earlier ones that work together.
_EARLIER = (
    f"{_SPARK}:spark-sql-kafka-0-10_2.13:4.2.0",
    f"{_SPARK}:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"{_KAFKA}:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
num.partitions=3
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""


def connector(spark: str) -> list[Path]:
    """The jars that a Spark of this version needs to read from Kafka."""
    try:
        return fetched(_JARS, f"connector-{spark}", [f"{_SPARK}:spark-sql-kafka-0-10_2.13:{spark}"])
    except FetchError:
        return fetched(_JARS, "connector-earlier", _EARLIER, alone=True)


class KafkaServer:
    """A broker in a folder. It can be killed, and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        jars = ":".join(map(str, fetched(_JARS, "broker", _BROKER)))
        self._java = [str(java_home() / "bin" / "java"), "-Xmx512m", "-cp", jars]
        self._port, controller = _free(), _free()
        self._settings = folder / "server.properties"
        written = _PROPERTIES.format(port=self._port, controller=controller, folder=folder)
        self._settings.write_text(written)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        storage = ["kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._settings)]
        run([*self._java, *storage], folder)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        with (self._folder / "words").open("ab") as words:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdout=words, stderr=words, cwd=self._folder)
        _wait(self._process, self._port)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def server() -> Iterator[KafkaServer]:
    """A broker in a temporary folder, which has started."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-kafka-"))
    try:
        made = KafkaServer(folder)
        try:
            made.start()
            yield made
        finally:
            made.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def broker() -> Iterator[str]:
    """Start a broker; gives its address."""
    with server() as made:
        yield made.address


def missing() -> str | None:
    """Why there can be no broker here; None if there can be."""
    return unfetchable(_JARS, "broker")


class ReadMessage(NamedTuple):
    """A message of a topic."""

    partition: int
    offset: int
    key: str
    id: str  # by its header
    value: Any


def create_topic(address: str, topic: str, **config: str) -> None:
    """Create a topic, with three partitions."""
    admin = AdminClient({"bootstrap.servers": address})
    made = admin.create_topics([NewTopic(topic, 3, 1, config=config)])
    made[topic].result(60)


def messages(address: str, topic: str, least: int = 0, seconds: float = 60.0) -> list[ReadMessage]:
    """What a topic holds, once it holds so many messages: by partition, in order."""
    settings = {
        "bootstrap.servers": address,
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    until, found = time.monotonic() + seconds, list[ReadMessage]()
    try:
        consumer.assign([TopicPartition(topic, at, 0) for at in range(3)])
        while time.monotonic() < until:
            got = consumer.poll(0.2)
            if got is not None and got.error() is None:
                headers = dict(got.headers() or [])
                place = int(got.partition() or 0), int(got.offset() or 0)
                key = _decoded(got.key())
                id = _decoded(headers.get(ID_HEADER))
                found.append(ReadMessage(*place, key, id, json.loads(got.value() or b"null")))
                continue
            try:
                ends = sum(
                    consumer.get_watermark_offsets(TopicPartition(topic, at), 10)[1]
                    for at in range(3)
                )
            except KafkaException:  # the broker has just been started again
                continue
            if len(found) >= max(least, ends):
                break
    finally:
        consumer.close()
    return sorted(found)


def _decoded(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the broker does not start")


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
