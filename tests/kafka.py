"""A Kafka broker of the tests' own, and Spark's connector to it, both fetched by Maven."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tamis.spark.runtime.java import java_home

ROOT = Path(__file__).parents[1]
JARS = ROOT / ".cache" / "kafka"
_SPARK, _KAFKA = "org.apache.spark", "org.apache.kafka"
_BROKER = (f"{_KAFKA}:kafka_2.13:4.1.0",)
# For a Spark without a connector of its own version: parts of earlier ones that work together.
_EARLIER = (
    f"{_SPARK}:spark-sql-kafka-0-10_2.13:4.2.0",
    f"{_SPARK}:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"{_KAFKA}:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_ALL_OTHERS = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
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
"""


class FetchError(Exception):
    """What Maven said."""


def connector(spark: str) -> list[Path]:
    """The jars that a Spark of this version needs to read from Kafka."""
    try:
        return _fetched(f"connector-{spark}", [f"{_SPARK}:spark-sql-kafka-0-10_2.13:{spark}"])
    except FetchError:
        return _fetched("connector-earlier", _EARLIER, alone=True)


@contextmanager
def broker() -> Iterator[str]:
    """Start a broker in a temporary folder; gives its address."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-kafka-"))
    jars = ":".join(map(str, _fetched("broker", _BROKER)))
    java = [str(java_home() / "bin" / "java"), "-Xmx512m", "-cp", jars]
    port, controller = _free(), _free()
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, controller=controller, folder=folder))
    name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    storage = [*java, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(settings)]
    try:
        _run(storage, folder)
        with (folder / "words").open("wb") as words:
            command = [*java, "kafka.Kafka", str(settings)]
            process = subprocess.Popen(command, stdout=words, stderr=words, cwd=folder)
        try:
            _wait(process, port)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _fetched(name: str, artifacts: Sequence[str], alone: bool = False) -> list[Path]:
    """Jars, with all that they need unless they are to be alone; kept for the next time."""
    folder = JARS / name
    if not folder.is_dir():
        fresh = Path(tempfile.mkdtemp(prefix="tamis-maven-"))
        (fresh / "pom.xml").write_text(_pom(artifacts, alone))
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
        try:
            _run(["mvn", "-B", "-q", *goal], fresh)
            JARS.mkdir(parents=True, exist_ok=True)
            shutil.move(fresh / "jars", folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return sorted(folder.glob("*.jar"))


def _pom(artifacts: Sequence[str], alone: bool) -> str:
    listed = ""
    for artifact in artifacts:
        group, id, version = artifact.split(":")
        listed += (
            f"<dependency><groupId>{group}</groupId><artifactId>{id}</artifactId>"
            f"<version>{version}</version>{_ALL_OTHERS if alone else ''}</dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tamis</groupId><artifactId>kafka</artifactId><version>1</version>"
        f"<dependencies>{listed}</dependencies></project>"
    )


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise FetchError(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
