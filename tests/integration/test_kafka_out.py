"""Notifications to a real broker of Kafka, which is killed on the way, as are the senders.

A kill of each by default; `TAMIS_KAFKA_KILLS=100` asks for more.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from tamis.broker.broker import Broker
from tamis.broker.delivery.kafka_settings import KafkaSettings
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.errors import BrokerError, SettingError, SparkError, TamisError
from tamis.replay.manifests import put
from tamis.replay.parts import NOTIFICATIONS, PartWriter
from tamis.replay.topic_producer import TopicMessage, TopicProducer, TopicsError, read_properties
from tamis.spark.stream.topic_follower import TopicTarget
from tests import kafka
from tests.campaign import campaign
from tests.integration.service.test_http import subscribe
from tests.kafka import KafkaServer, ReadMessage
from tests.serving import serving
from tests.soak_report import seed

pytestmark = [
    pytest.mark.skipif(kafka.missing() is not None, reason=str(kafka.missing())),
    pytest.mark.xdist_group("kafka"),
]
KILLS = int(os.environ.get("TAMIS_KAFKA_KILLS", "1"))


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


# -- from the service ------------------------------------------------------------------------------


def test_a_subscriber_chooses_among_the_topics_of_the_site(tmp_path: Path) -> None:
    settings = KafkaSettings("127.0.0.1:1", ("alerts, orders", "news"))
    rules = SinkRules.of(["127.0.0.1"], settings)
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}, sinks=rules) as broker:
        lease = broker.subscribe("price < 5", sink=Sink.of({"kafka": {"topic": "orders"}})).result()
        assert lease.secret is None
        for sink, words in (
            ({"kafka": {"topic": "other"}}, "'other' is not among those"),
            ({"kafka": {"topic": "news"}, "url": "https://example.com"}, "not both"),
            ({"kafka": {"topic": "news", "brokers": "evil:9092"}}, "a Kafka sink is"),
            ({"kafka": {"topic": "../x"}}, "the name of a topic"),
            ({"kafka": "news"}, "a Kafka sink is"),
        ):
            with pytest.raises(BrokerError, match=words):
                broker.subscribe("price < 5", sink=Sink.of(sink)).result()
        other = broker.subscribe("price < 5", sink=Sink.of({"body": "none"})).result()
        topic = Sink.of({"kafka": {"topic": "news"}, "body": ["price"]})
        changed = broker.update(other.id, ticket=other.ticket, sink=topic).result()
        assert Sink.read(str(changed.sink)) == topic
        hook = Sink.of({"url": "http://127.0.0.1:9/"})
        with pytest.raises(BrokerError, match="keeps the kind of its sink"):
            broker.update(lease.id, ticket=lease.ticket, sink=hook).result()
    with pytest.raises(SettingError, match="go together"):
        KafkaSettings("127.0.0.1:1").check()


def test_the_service_and_the_broker_are_killed(server: KafkaServer, tmp_path: Path) -> None:
    """All notifications arrive; those that come twice have one id; subscriptions keep their order.

    The notifications that must arrive are those that the service itself shows at the end.
    """
    topic, draw = f"alerts-{uuid.uuid4().hex[:8]}", random.Random(seed())
    kafka.create_topic(server.address, topic)
    options = ("--kafka-brokers", server.address, "--kafka-topics", topic)
    bodies: list[Any] = ["event", "none", ["price"]]
    leases: list[dict[str, Any]] = []
    with campaign("kafka-kills") as running:
        for cycle in range(KILLS + 1):
            with serving(tmp_path / "data", *options) as (client, process):
                leases += [
                    subscribe(client, f"price < {40 * at}", lease=None, sink={
                        "kafka": {"topic": topic}, "body": bodies[at % 3],
                    })
                    for at in range(1, 4)
                ]  # fmt: skip
                before = len(kafka.messages(server.address, topic))
                for batch in range(draw.randint(5, 15)):
                    prices = [{"price": (7 * at + batch) % 100} for at in range(60)]
                    assert client.post("/v1/events", json=prices).status_code == 202
                if cycle < KILLS:
                    if cycle % 2 == 0:
                        server.kill()
                        client.post("/v1/events", json=[{"price": 1}] * 100)
                        server.start()
                    while len(kafka.messages(server.address, topic)) == before:
                        time.sleep(0.05 * draw.random())
                    process.kill()
                    running.tried += 1
                    continue
                wanted = {
                    (lease["id"], each["sequence"]): each.get("event")
                    for lease in leases
                    for each in shown(client, lease)
                }
                assert wanted
                ids: set[tuple[int, int]] = set()
                until = time.monotonic() + 60
                while ids != set(wanted) and time.monotonic() < until:
                    found = kafka.messages(server.address, topic, len(wanted))
                    ids = {(int(each.key), each.value["sequence"]) for each in found}
                assert ids == set(wanted)
    assert len({each.id for each in found}) == len(wanted), "an id for each notification"
    for key, mine in by_key(found).items():
        numbers = [each.value["sequence"] for each in mine]
        assert numbers == sorted(numbers)
        assert all(each.value["subscription"] == int(key) for each in mine)
    for each in found:
        assert each.value.get("event") == wanted[int(each.key), each.value["sequence"]]


def shown(client: httpx2.Client, lease: dict[str, Any]) -> list[dict[str, Any]]:
    """All notifications of a subscription, as the service shows them, with what it asked for."""
    cursor, found = -1, list[dict[str, Any]]()
    while True:
        page = client.get(
            f"/v1/subscriptions/{lease['id']}/notifications",
            params={"after": cursor, "wait": 2, "most": 10_000},
            headers={"Tamis-Ticket": lease["ticket"]},
        ).json()
        found += page["notifications"]
        if not page["notifications"]:
            return found
        cursor = page["cursor"]


def test_what_a_topic_refuses_is_a_dead_letter_and_can_be_sent_again(
    server: KafkaServer, tmp_path: Path
) -> None:
    topic = f"small-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(server.address, topic)
    limit = tmp_path / "kafka.properties"
    limit.write_text("message.max.bytes=1000\n")
    schema = {"attributes": {"title": "text"}}

    def broker_with(properties: Path | None) -> Broker:
        rules = SinkRules.of([], KafkaSettings(server.address, (topic,), properties))
        return Broker(tmp_path / "data", schema, sinks=rules)

    with broker_with(limit) as broker:
        sink = Sink.of({"kafka": {"topic": topic}})
        lease = broker.subscribe("title exists", sink=sink).result()
        for title in ("one", "x" * 2000, "two"):
            broker.publish([IncomingEvent(json.dumps({"title": title}))]).result()
        assert len(kafka.messages(server.address, topic, 2)) == 2
        until = time.monotonic() + 30
        while not broker.webhooks.dead_letters(0, 10) and time.monotonic() < until:
            time.sleep(0.05)
        (dead,) = broker.webhooks.dead_letters(0, 10)
        assert (dead.subscription, dead.sequence) == (lease.id, 2)
        assert "too large" in dead.error.lower()
        assert broker.webhooks.replay(lease.id) == 1
        time.sleep(1)
        assert broker.webhooks.dead_letters(0, 10) == [dead], "it was refused again"
    with broker_with(None) as broker:
        assert broker.webhooks.retry(dead.id) == 1
        found = kafka.messages(server.address, topic, 3)
        assert [each.value["event"]["title"][:3] for each in found] == ["one", "two", "xxx"]
        until = time.monotonic() + 30
        while broker.webhooks.dead_letters(0, 10) and time.monotonic() < until:
            time.sleep(0.05)
        assert broker.webhooks.dead_letters(0, 10) == []


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
