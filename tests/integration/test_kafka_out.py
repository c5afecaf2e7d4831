"""Notifications to a real broker of Kafka, which is killed on the way, as are the senders.

A few kills by default; `TAMIS_KAFKA_KILLS=100` asks for more.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import SparkError, TamisError
from tamis.replay.manifests import put
from tamis.replay.parts import NOTIFICATIONS, PartWriter
from tamis.replay.topic_producer import TopicMessage, TopicProducer, TopicsError, read_properties
from tamis.spark.stream.topic_follower import TopicTarget
from tests import kafka
from tests.kafka import KafkaServer, ReadMessage

pytestmark = [
    pytest.mark.skipif(kafka.missing() is not None, reason=str(kafka.missing())),
    pytest.mark.xdist_group("kafka"),
]
KILLS = int(os.environ.get("TAMIS_KAFKA_KILLS", "2"))


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    with kafka.server() as made:
        yield made


def by_key(found: list[ReadMessage]) -> dict[str, list[ReadMessage]]:
    """The messages of each key, each once, in the order in which they came first."""
    ids: set[str] = set()
    ordered: dict[str, list[ReadMessage]] = {}
    partitions: dict[str, set[int]] = {}
    for each in found:
        partitions.setdefault(each.key, set()).add(each.partition)
        if each.id not in ids:
            ids.add(each.id)
            ordered.setdefault(each.key, []).append(each)
    assert all(len(each) == 1 for each in partitions.values()), "a key has one partition"
    return ordered


def _page(start: int, count: int, topic: str = "alerts") -> list[TopicMessage]:
    return [
        TopicMessage(topic, f"s{at % 7}", b'{"n": %d}' % at, f"id{at}")
        for at in range(start, start + count)
    ]


def test_a_broker_that_is_away_delays_messages_and_loses_none(server: KafkaServer) -> None:
    """In the order of each key, once each, although the broker was killed and came back."""
    kafka.create_topic(server.address, "alerts")
    kafka.create_topic(server.address, "small", **{"max.message.bytes": "1000"})
    producer = TopicProducer(server.address)
    assert producer.send(_page(0, 500)) == {}
    server.kill()
    done = threading.Event()

    def send() -> None:
        assert producer.send(_page(500, 500)) == {}
        done.set()

    threading.Thread(target=send, daemon=True).start()
    assert not done.wait(3)
    assert producer.unreachable is not None
    until = time.monotonic() + 1
    other = TopicProducer(server.address, stopping=lambda: time.monotonic() > until)
    with pytest.raises(TopicsError, match="stopped before Kafka"):
        other.send(_page(0, 3))
    other.close()
    server.start()
    assert done.wait(60)
    found = kafka.messages(server.address, "alerts", 1000)
    assert sorted(each.value["n"] for each in found) == list(range(1000))
    for mine in by_key(found).values():
        assert [each.value["n"] for each in mine] == sorted(each.value["n"] for each in mine)
    assert all(each.id == f"id{each.value['n']}" for each in found)

    large = TopicMessage("small", "s", b'"' + b"x" * 5000 + b'"', "large")
    page = [*_page(0, 2, "small"), large, *_page(2, 2, "small")]
    for each in (producer, TopicProducer(server.address, {"message.max.bytes": "1000"})):
        refused = each.send(page)
        assert list(refused) == [2]
        assert "too large" in refused[2].lower()
        each.close()
    assert len(kafka.messages(server.address, "small", 8)) == 8


def test_properties_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("# encryption\nsecurity.protocol = ssl\n\nssl.ca.location=/etc/ca.pem\n")
    assert read_properties(path) == {
        "security.protocol": "ssl",
        "ssl.ca.location": "/etc/ca.pem",
    }
    path.write_text("security.protocol\n")
    with pytest.raises(TamisError, match="line 1 is not name=value"):
        read_properties(path)
    with pytest.raises(TamisError, match=r"enable.idempotence of Kafka cannot be changed"):
        TopicProducer("127.0.0.1:1", {"enable.idempotence": "false"})
    with pytest.raises(TamisError, match="the settings of Kafka are refused"):
        TopicProducer("127.0.0.1:1", {"no.such.property": "1"})


# -- from the files of a stream --------------------------------------------------------------------

FOLLOW = """
import sys
from pathlib import Path
from tamis.spark.stream.topic_follower import TopicFollower, TopicTarget

follower = TopicFollower(TopicTarget.parse(sys.argv[1]), Path(sys.argv[2]), "q", "0123456789abcdef")
follower.finish()
while follower.running:
    follower._thread.join(1)
    if follower.failure:
        raise follower.failure
"""
BATCH = 2000  # notifications


def _write_batch(out: Path, batch: int) -> set[str]:
    """A batch as the sink of a stream writes it, in two parts; the ids of its notifications."""
    start, ids = batch * BATCH, set()
    parts = []
    for half in range(2):
        numbers = [start + at for at in range(BATCH) if at % 2 == half][::-1]
        owners = [f"s{number % 11}" for number in numbers]
        ids |= {f"0123456789ab.{number}.s{number % 11}" for number in numbers}
        writer = PartWriter(out / NOTIFICATIONS, f"part-q-{uuid.uuid4().hex}.parquet")
        prices = [number / 2 for number in numbers]
        writer.write(pa.table({"sequence": numbers, "subscription": owners, "price": prices}))
        parts.append(writer.close())
    offsets = [{"log": "0123456789abcdef", "sequence": start + BATCH, "version": -1}]
    put(out, f"q-{batch:010d}-x", {"query": "q", "batch": batch, "offsets": offsets}, parts)
    return ids


def test_a_follower_of_files_is_killed_and_goes_on(server: KafkaServer, tmp_path: Path) -> None:
    """Nothing is lost; what comes twice has the same id; each subscription has its order."""
    topic, draw = f"found-{uuid.uuid4().hex[:8]}", random.Random(KILLS)
    kafka.create_topic(server.address, topic)
    command = [sys.executable, "-c", FOLLOW, f"{server.address}/{topic}", str(tmp_path)]
    written: set[str] = set()
    for batch in range(KILLS + 1):
        written |= _write_batch(tmp_path, 2 * batch) | _write_batch(tmp_path, 2 * batch + 1)
        process = subprocess.Popen(command)
        if batch < KILLS:
            before = len(kafka.messages(server.address, topic))
            while len(kafka.messages(server.address, topic)) == before and process.poll() is None:
                time.sleep(draw.random() * 0.05)
            process.kill()
            process.wait()
        else:
            assert process.wait(120) == 0
    found = kafka.messages(server.address, topic, len(written))
    assert {each.id for each in found} == written
    for mine in by_key(found).values():
        numbers = [each.value["sequence"] for each in mine]
        assert numbers == sorted(numbers)
    first = found[0]
    assert first.value == {
        "sequence": first.value["sequence"],
        "subscription": first.key,
        "event": {"price": first.value["sequence"] / 2},
    }


def test_where_to_send_is_brokers_and_a_topic() -> None:
    assert TopicTarget.parse("one:9092,two:9092/alerts") == ("one:9092,two:9092", "alerts", None)
    for text in ("alerts", "/alerts", "one:9092/", "one:9092/a/b"):
        with pytest.raises(SparkError, match="is not BROKERS/TOPIC"):
            TopicTarget.parse(text)
