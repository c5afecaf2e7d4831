"""Many streams, one reading: each gets its notifications once, in order, whenever it joins."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.requests import Request

from tamis.broker.access.caller import ANONYMOUS
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.notification_reader import Notification, Page, TrimmedError
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.service import shared_reading
from tamis.service.app import make_app
from tamis.service.context import CALLER
from tamis.service.routes.notification_routes import _Reader, _stream
from tamis.service.settings import Settings
from tamis.service.shared_reading import SharedReading, SharedReadings, SharedStream
from tamis.service.waiting import Waiting


class GrowingLog:
    """Every event has a number, and notifies some subscriptions."""

    def __init__(self, waiting: Waiting) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.end = 0
        self.reads = 0
        self._waiting = waiting

    def add(self, ids: list[int]) -> None:
        self.pairs += [(self.end, id) for id in ids]
        self.end += 1
        numbers = pa.array([self.end - 1] * len(ids), pa.int64()).to_numpy()
        self._waiting.found(NotificationPairs(self.end - 1, self.end, numbers, pa.array(ids)))

    async def read(self, after: int, ids: WantedIds, most: int) -> Page:
        self.reads += 1
        end, wanted = self.end, set(ids)
        found = [
            Notification(number, id, None)
            for number, id in self.pairs
            if after < number < end and id in wanted
        ]
        await asyncio.sleep(0)  # others join and publish meanwhile
        return Page(found, end - 1)


def _written(each: Notification) -> bytes:
    return f"{each.sequence} ".encode()


def test_every_stream_gets_everything_once() -> None:
    async def run(seed: int) -> None:
        draw, waiting = random.Random(seed), Waiting()
        waiting.attach(asyncio.get_running_loop())
        log = GrowingLog(waiting)
        reading = SharedReading(log.read, _written, waiting)
        got: dict[int, list[int]] = {}
        begun: dict[int, tuple[int, int]] = {}

        async def follow(name: int, id: int) -> None:
            begun[name] = log.end - 1, id
            stream = SharedStream(id, log.end - 1)
            await reading.join(stream)
            got[name] = []
            while not stream.ended:
                got[name] += map(int, (await stream.take(5.0)).split())
            reading.leave(stream)

        tasks = []
        for turn in range(60):
            if turn < 40 and draw.random() < 0.5:
                tasks.append(asyncio.create_task(follow(turn, draw.randrange(4))))
            log.add(draw.sample(range(4), draw.randrange(5)))
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
        for _ in range(200):
            await asyncio.sleep(0)
        waiting.close()
        await asyncio.gather(*tasks)
        for name, (after, id) in begun.items():
            assert got[name] == [n for n, each in log.pairs if each == id and n > after]

    for seed in range(30):
        asyncio.run(run(seed))


def test_one_read_serves_all_streams() -> None:
    async def run() -> int:
        waiting = Waiting()
        waiting.attach(asyncio.get_running_loop())
        log = GrowingLog(waiting)
        reading = SharedReading(log.read, _written, waiting)
        streams = [SharedStream(id, -1) for id in range(100)]
        for stream in streams:
            await reading.join(stream)
        await asyncio.sleep(0.01)
        before = log.reads
        log.add(list(range(100)))
        assert [await stream.take(5.0) for stream in streams] == [b"0 "] * 100
        await asyncio.sleep(0.01)
        waiting.close()
        return log.reads - before

    assert asyncio.run(run()) <= 3


def test_a_slow_reader_is_let_go() -> None:
    async def run() -> None:
        waiting = Waiting()
        waiting.attach(asyncio.get_running_loop())
        log = GrowingLog(waiting)
        message = bytes(shared_reading.BEHIND // 4)
        reading = SharedReading(log.read, lambda each: message, waiting)
        slow, quick = SharedStream(1, -1), SharedStream(1, -1)
        for stream in (slow, quick):
            await reading.join(stream)
        for _ in range(8):
            log.add([1])
            assert await quick.take(5.0) == message
        assert slow.ended
        assert not quick.ended
        waiting.close()

    asyncio.run(run())


def test_more_than_may_wait_ends_a_stream_at_its_cursor() -> None:
    """What came before is there, and the reader goes on alone after it."""

    async def run() -> None:
        waiting = Waiting()
        waiting.attach(asyncio.get_running_loop())
        log = GrowingLog(waiting)
        message = bytes(shared_reading.BEHIND // 4)
        reading = SharedReading(log.read, lambda each: message, waiting)
        stream = SharedStream(1, -1)
        for _ in range(8):
            log.add([1])
        await reading.join(stream)
        while not stream.ended:
            await asyncio.sleep(0)
        assert stream.cursor == 4
        assert await stream.take(5.0) == 5 * message
        waiting.close()

    asyncio.run(run())


def test_a_stream_that_joins_a_reading_without_streams_gets_what_it_missed() -> None:
    """The task of the reading waits: it has read further than the stream that joins."""

    async def run() -> None:
        waiting = Waiting()
        waiting.attach(asyncio.get_running_loop())
        log = GrowingLog(waiting)
        reading = SharedReading(log.read, _written, waiting)
        first, second = SharedStream(1, -1), SharedStream(2, -1)
        await reading.join(first)
        log.add([1, 2])
        assert await first.take(5.0) == b"0 "
        await asyncio.sleep(0.01)  # the task waits
        reading.leave(first)
        await reading.join(second)
        assert await second.take(1.0) == b"0 "
        waiting.close()

    asyncio.run(run())


def test_a_reader_who_cannot_join_leaves_nothing_behind(tmp_path: Path) -> None:
    async def run(broker: Broker) -> None:
        readings = SharedReadings(broker, Waiting())
        async with readings.joined(1, 10, "none", _written):
            with pytest.raises(TrimmedError):
                async with readings.joined(2, -5, "none", _written):
                    pass
            assert len(readings) == 1
        assert len(readings) == 0

    with Broker(tmp_path / "data", {"attributes": {"price": "decimal"}}) as broker:
        asyncio.run(run(broker))


def test_a_burst_does_not_end_the_stream_of_a_quick_reader(tmp_path: Path) -> None:
    """It gets everything once, in order, over one connection."""
    count, long = 100, "x" * 50_000

    async def run(broker: Broker, waiting: Waiting) -> None:
        app = make_app(broker, Settings(tmp_path), waiting)
        waiting.attach(asyncio.get_running_loop())
        lease = await asyncio.wrap_future(broker.subscribe("price < 5"))
        scope = {"type": "http", "headers": [], "query_string": b"", "app": app, CALLER: ANONYMOUS}
        reader = _Reader(app.state.server, Request(scope), lease.id, lease.ticket)
        got: list[int] = []
        stream = _stream(reader, -1)
        assert await anext(stream) == b": tamis\n\n"
        while len(got) < 2 * count:
            message = asyncio.ensure_future(anext(stream))
            if not len(got) % count:  # it has caught up, and reads with others
                await asyncio.sleep(0.2)
                some = [IncomingEvent(json.dumps({"price": 1, "title": long}))] * count
                await asyncio.wrap_future(broker.publish(some))
            text = (await asyncio.wait_for(message, 60)).decode()
            got += [int(line[4:]) for line in text.splitlines() if line[:4] == "id: "]
        waiting.close()
        assert got == list(range(1, 2 * count + 1))

    waiting = Waiting()
    schema = {"attributes": {"price": "decimal", "title": "text"}}
    with Broker(tmp_path / "data", schema, found=waiting.found) as broker:
        asyncio.run(run(broker, waiting))
