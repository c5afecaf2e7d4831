"""Messages to a real broker, which is killed on the way."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tamis.errors import TamisError
from tamis.replay.topic_producer import TopicMessage, TopicProducer, TopicsError, read_properties
from tests import kafka

pytestmark = pytest.mark.skipif(kafka.missing() is not None, reason=str(kafka.missing()))


def _page(start: int, count: int, topic: str = "alerts") -> list[TopicMessage]:
    return [
        TopicMessage(topic, f"s{at % 7}", b'{"n": %d}' % at, f"id{at}")
        for at in range(start, start + count)
    ]


def test_a_broker_that_is_away_delays_messages_and_loses_none() -> None:
    """In the order of each key, once each, although the broker was killed and came back."""
    with kafka.server() as server:
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
        server.start()
        assert done.wait(60)
        large = TopicMessage("small", "s", b'"' + b"x" * 5000 + b'"', "large")
        page = [*_page(0, 2, "small"), large, *_page(2, 2, "small")]
        for each in (producer, TopicProducer(server.address, {"message.max.bytes": "1000"})):
            refused = each.send(page)
            assert list(refused) == [2]
            assert "too large" in refused[2].lower()
            each.close()
        found = kafka.messages(server.address, "alerts", 1000)
        assert len(kafka.messages(server.address, "small", 8)) == 8
        server.kill()
        _ends_while_nobody_answers(server.address)
    assert sorted(each.value["n"] for each in found) == list(range(1000))
    for key in {each.key for each in found}:
        mine = [each for each in found if each.key == key]
        assert len({each.partition for each in mine}) == 1
        assert [each.value["n"] for each in mine] == sorted(each.value["n"] for each in mine)
    assert all(each.id == f"id{each.value['n']}" for each in found)


def _ends_while_nobody_answers(address: str) -> None:
    until = time.monotonic() + 1
    producer = TopicProducer(address, stopping=lambda: time.monotonic() > until)
    with pytest.raises(TopicsError, match="stopped before Kafka"):
        producer.send(_page(0, 3))
    producer.close()


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
