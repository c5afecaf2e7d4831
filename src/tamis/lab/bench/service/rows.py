"""The rows of `tamis bench service`.

A server runs on one core, the load generator on another. All rows share one data folder with a
million live DEXIN subscriptions, of which about 300 match an event.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tamis.errors import TamisError
from tamis.lab.bench.service.server_process import ServerProcess, fill, run_load, serving
from tamis.lab.bench.setting import BenchSetting, chosen_rows
from tamis.lab.results.records import Figure, Goal, MemoryCourse
from tamis.workload import Workload

SERVICE = "service"
_ALL = "a1 >= 0"  # a condition that every event satisfies
_NEVER = "a1 < 0"
_ALONE = 32  # connections that publish one event at a time
_LINES = 1000  # in a request of many events
_PATIENCE = 12  # times ten seconds
Loaded = Iterator[Figure | MemoryCourse | str]


def rows(names: tuple[str, ...]) -> tuple[str, ...]:
    """The named rows in the order of the table; all rows without names."""
    return chosen_rows(names, ROWS, SERVICE)


def steps(setting: BenchSetting) -> int:
    """The number of figures and steps."""
    return 1 + sum(_STEPS[name] for name in rows(setting.rows))


def measure(setting: BenchSetting) -> Loaded:
    """Each row of the table, on one data folder."""
    with TemporaryDirectory(prefix="tamis-bench-") as made:
        place = Path(made)
        yield f"{setting.service_subscriptions:,} subscriptions: load and compile"
        filled = fill(place / "data", setting.service_subscriptions, setting.seed)
        world = _LoadedService(setting, place, filled)
        for name in rows(setting.rows):
            yield from _ROWS[name](world)


class _LoadedService:
    """The data folder and the events that rows share."""

    def __init__(self, setting: BenchSetting, place: Path, made: Workload) -> None:
        self.setting, self.place = setting, place
        self.data, self.events = place / "data", place / "events.jsonl"
        self.full = setting.service_subscriptions >= 1_000_000
        self.facts = {"subscriptions": setting.service_subscriptions, **made.parameters}
        self._schema = place / "schema.json"
        self._schema.write_text(json.dumps(made.schema), "utf-8")
        drawn = made.events(setting.service_events).to_pylist()
        self.events.write_text("".join(json.dumps(each) + "\n" for each in drawn), "utf-8")

    @contextmanager
    def empty(self, *options: str) -> Iterator[ServerProcess]:
        """A server on a folder of its own, without subscriptions."""
        with (
            TemporaryDirectory(dir=self.place) as made,
            serving(Path(made) / "data", "--schema", str(self._schema), *options) as server,
        ):
            yield server

    def goal(self, limit: float, *, at_most: bool) -> Goal | None:
        """Goals are for the full size."""
        return Goal(limit, at_most=at_most) if self.full else None

    def load(self, server: ServerProcess, what: str, **asked: Any) -> dict[str, Any]:
        where = {"host": server.host, "port": server.port, "events": str(self.events)}
        return run_load({"what": what, "seconds": self.setting.service_seconds, **where, **asked})

    def figure(
        self, what: str, value: float, unit: str, goal: Goal | None = None, **facts: Any
    ) -> Figure:
        return Figure(SERVICE, what, value, unit, value, value, 1, goal, {**self.facts, **facts})


def _rate(world: _LoadedService, what: str, done: dict[str, Any], goal: Goal | None) -> Figure:
    return world.figure(what, done["events"] / done["seconds"], "/s", goal, **done)


def _restart(world: _LoadedService) -> Loaded:
    """Start on the full folder, kill, start again."""
    yield "restart: first start"
    with serving(world.data) as server:
        world.load(server, "publish", connections=1, seconds=1)
        server.kill()
    yield "restart: after a kill"
    with serving(world.data) as server:
        yield world.figure("ready after a kill", server.ready_s, "s", world.goal(15, at_most=True))
        world.load(server, "publish", connections=4, seconds=2)
        memory = server.rss / 1e9
        yield world.figure("  memory", memory, "GB", world.goal(2.5, at_most=True))


def _single(world: _LoadedService) -> Loaded:
    """One event a request, with all subscriptions and with one that never matches."""
    yield "single publishes: matched"
    with serving(world.data) as server:
        world.load(server, "publish", connections=_ALONE, seconds=3)
        done = world.load(server, "publish", connections=_ALONE)
        what = "single publishes over HTTP, matched"
        yield _rate(world, what, done, world.goal(2500, at_most=False))
        yield world.figure("  from request to answer, 99th percentile", done["p99"], "ms")
    yield "single publishes: without matches"
    with world.empty() as server:
        server.call("POST", "/v1/subscriptions", {"condition": _NEVER})
        world.load(server, "publish", connections=_ALONE, seconds=3)
        done = world.load(server, "publish", connections=_ALONE)
        goal = world.goal(7000, at_most=False)
        yield _rate(world, "  without matches", done, goal)


def _lines(world: _LoadedService) -> Loaded:
    """Many events a request, for long: the rate and the memory."""
    seconds = world.setting.service_long_seconds
    yield f"lines for {seconds:g} s"
    with serving(world.data) as server:
        world.load(server, "publish", connections=2, lines=_LINES, seconds=3)
        with _Course(server, seconds / 120) as course:
            done = world.load(server, "publish", connections=2, lines=_LINES, seconds=seconds)
        yield _rate(world, f"lines of {_LINES:,} events, matched and written", done,
                    world.goal(20_000, at_most=False))  # fmt: skip
        yield MemoryCourse(SERVICE, "memory of the server under load", course.at, course.bytes,
                           {**world.facts, **done})  # fmt: skip


class _Course:
    """The memory of a server, looked at now and then while a block runs."""

    def __init__(self, server: ServerProcess, pause: float) -> None:
        self._server, self._pause = server, pause
        self.at: list[float] = []
        self.bytes: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Course:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        began = time.monotonic()
        while True:
            self.at.append(time.monotonic() - began)
            self.bytes.append(self._server.rss)
            if self._ended.wait(self._pause):
                return


def _grpc(world: _LoadedService) -> Loaded:
    """Groups of a hundred events over one stream of gRPC, without matches."""
    yield "a stream of gRPC"
    with world.empty("--grpc", "127.0.0.1:0") as server:
        server.call("POST", "/v1/subscriptions", {"condition": _NEVER})
        for seconds in (2, world.setting.service_seconds):
            done = world.load(server, "call", grpc=server.grpc, lines=100, seconds=seconds)
        goal = world.goal(50_000, at_most=False)
        yield _rate(world, "a stream of gRPC in groups of 100, without matches", done, goal)


def _latency(world: _LoadedService) -> Loaded:
    """One stream with all subscriptions live, at two rates."""
    # One more than the folder has: by default, a million is the limit.
    limit = world.setting.service_subscriptions + 1
    with serving(world.data, "--limit-subscriptions", str(limit)) as server:
        lease = server.call("POST", "/v1/subscriptions", {"condition": _ALL})
        streams = [(lease["id"], lease["ticket"])]
        world.load(server, "publish", connections=_ALONE, seconds=3)
        yield "until matching has caught up"
        for _ in range(_PATIENCE):  # it may still plan for the first events
            if world.load(server, "follow", streams=streams, rate=10, seconds=1)["messages"]:
                break
        for rate in (50, 500):
            yield f"publish to stream at {rate} events/s"
            done = world.load(server, "follow", streams=streams, rate=rate)
            if not done["messages"]:
                raise TamisError(
                    f"no notification arrived of {done['wanted']:,} at {rate} events/s: the server "
                    "is behind with matching; give it a quieter machine, or fewer --subscriptions"
                )
            what = f"publish to stream at {rate} events/s, median"
            yield world.figure(what, done["p50"], "ms", world.goal(5, at_most=True), **done)
            tail = "  99th percentile"
            yield world.figure(tail, done["p99"], "ms", world.goal(25, at_most=True), **done)


def _streams(world: _LoadedService) -> Loaded:
    """Many streams, each of its own subscription, and every event for all of them."""
    many, rate = world.setting.service_streams, 20
    yield f"{many:,} streams"
    with world.empty() as server:
        leases = [server.call("POST", "/v1/subscriptions", {"condition": _ALL})
                  for _ in range(many)]  # fmt: skip
        streams = [(each["id"], each["ticket"]) for each in leases]
        done = world.load(server, "follow", streams=streams, rate=rate)
        what = f"{many:,} streams, messages"
        sent = done["messages"] / done["seconds"]
        yield world.figure(what, sent, "/s", world.goal(19_800, at_most=False), **done)
        tail = "  publish to stream, 99th percentile"
        yield world.figure(tail, done.get("p99", 1e9), "ms", world.goal(100, at_most=True), **done)


# What publishes most comes late: a server that is behind with matching has no latency to speak of.
_ROWS: dict[str, Callable[[_LoadedService], Loaded]] = {
    "restart": _restart,
    "single": _single,
    "latency": _latency,
    "grpc": _grpc,
    "lines": _lines,
    "streams": _streams,
}
_STEPS = {"restart": 4, "single": 5, "lines": 3, "grpc": 2, "latency": 7, "streams": 3}
ROWS = tuple(_ROWS)
