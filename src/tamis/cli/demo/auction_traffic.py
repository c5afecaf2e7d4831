"""The traffic of the demonstration: lots are published, and subscriptions come and go.

Everything goes to a service over HTTP, as the programs of users would send it. Whoever subscribes
to "any furniture" would get hundreds of notifications a second. So the subscribers here are more
precise than those of the workload `auctions`: they use its long conditions, each with one more
predicate.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis import workload
from tamis.client import Client
from tamis.client.answers import PublishReceipt
from tamis.client.call import ServiceCall
from tamis.client.plans import reader
from tamis.client.service_error import ServiceError
from tamis.errors import TamisError
from tamis.workload.auction_schema import ADJECTIVES, TAGS

BLOCK = 10_000  # conditions drawn at once
_PREDICATES = 4  # fewest predicates of a condition, before one is added
TOGETHER = 2_000  # subscriptions in a request
_TICK = 0.1  # seconds between two publishes
_CHANGE = 0.5  # seconds between two rounds of changes
_LATE = 1.0  # seconds: a machine that slept longer does not catch up
_LEASED = 0.8  # share of the new subscriptions that have a lease; the others are cancelled
_LEASE = (20.0, 40.0)  # seconds
_RENEWED = 0.1  # share of the leases that are renewed shortly before they expire
_SOON = 5.0  # seconds before expiry
_NOT_FOUND = 404

# Events that are wrong on purpose, one a second in turn: cut off, a wrong type, no price.
BROKEN = (
    '{"event_type": "furniture", "title": "Sturdy oak tab',
    json.dumps({"event_type": "furniture", "title": "Fine oak desk", "price": "a bargain",
                "quantity": 1, "closes": "2026-01-31T12:00:00Z", "category": "desk"}),
    json.dumps({"event_type": "toys", "title": "Old red train", "quantity": 1,
                "closes": "2026-01-31T12:00:00Z", "category": "train"}),
)  # fmt: skip


def draw_conditions(block: int, start: datetime) -> list[str]:
    """The conditions of a block of subscriptions. Lots begin to close at `start`."""
    rng = np.random.default_rng([block, 4711])
    found: list[pa.Array] = []
    count = 0
    for part in range(100):
        made = workload.make("auctions", 4 * BLOCK, seed=1000 * block + part, start=start)
        texts = made.subscriptions["condition"].combine_chunks()
        long = pc.greater_equal(pc.count_substring(texts, " and "), _PREDICATES - 1)
        plain = pc.invert(pc.match_substring(texts, " or "))
        texts = texts.filter(pc.and_(long, plain))
        found.append(texts)
        count += len(texts)
        if count >= BLOCK:
            break
    chosen = pa.concat_arrays(found).slice(0, BLOCK).to_pylist()
    adjectives = rng.choice(ADJECTIVES, BLOCK)
    tags = rng.choice(TAGS, BLOCK)
    return [
        _with_predicate(text, str(adjective), str(tag))
        for text, adjective, tag in zip(chosen, adjectives, tags, strict=True)
    ]


def _with_predicate(text: str, adjective: str, tag: str) -> str:
    """The condition with a predicate on one more attribute.

    >>> _with_predicate("category <= bed and price < 50", "Grand", "oak")
    'category <= bed and price < 50 and tags contains "oak"'
    """
    if "tags " not in text:
        return f'{text} and tags contains "{tag}"'
    if "title " not in text:
        return f'{text} and title starts with "{adjective}"'
    return text


class LotPublisher:
    """Publishes lots at a steady rate, in a thread, until it is stopped; and a broken one a second.

    Args:
        client: of the service.
        rate: lots a second.
        seed: other lots than those of an earlier run.
    """

    def __init__(self, client: Client, rate: float, seed: int) -> None:
        self._client, self._rate, self._seed = client, rate, seed
        self.published = self.broken = 0
        self.refusal = ""  # of the last broken one
        self.trouble: str | None = None
        self._lots = workload.make("auctions", 0, start=datetime.now(UTC))
        self._stop = Event()
        self._thread = Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present request."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def publish(self, lots: int) -> None:
        if lots:
            table = self._lots.events(lots, seed=self._seed + self.published)
            self._client.publish([_without_nothing(row) for row in table.to_pylist()])
            self.published += lots

    def publish_broken(self) -> None:
        """Publish an event that the service refuses."""
        line = BROKEN[self.broken % len(BROKEN)]
        self.broken += 1
        try:
            self._client.perform(_publish_line(line))
        except ServiceError as why:
            self.refusal = why.detail
        else:
            raise TamisError(f"the service has accepted a broken event: {line}")

    def _run(self) -> None:
        self.trouble = _trouble("publishing", self._publish_until_stopped, self._stop)

    def _publish_until_stopped(self) -> None:
        before, broken_at, lots = time.monotonic(), 0.0, 0.0
        while not self._stop.wait(_TICK):
            now = time.monotonic()
            lots += min(now - before, _LATE) * self._rate
            before = now
            self.publish(int(lots))
            lots %= 1
            if now - broken_at > 1.0:
                broken_at = now
                self.publish_broken()


class Subscribers:
    """Adds subscriptions until there are enough, then lets them come and go; in a thread.

    Args:
        client: of the service, with the key that owns the subscriptions.
        wanted: how many subscriptions there are to be.
        churn: changes a second, once all are there.
        permanent: the subscriptions without a lease that are there already.
    """

    def __init__(
        self, client: Client, wanted: int, churn: float, permanent: Collection[int | str]
    ) -> None:
        self._client, self._wanted, self._churn = client, wanted, churn
        self.subscribed = self.cancelled = self.renewed = 0
        self.trouble: str | None = None
        self.complete = Event()  # as many as wanted have been added, or it has stopped
        self._start = datetime.now(UTC)
        self._permanent = list(permanent)
        self._rng = np.random.default_rng([len(self._permanent), int(self._start.timestamp())])
        self._leases: deque[tuple[float, int | str]] = deque()
        self._conditions = self._draw(len(self._permanent))
        self._stop = Event()
        self._thread = Thread(target=self._run, name="subscribers", daemon=True)

    @property
    def permanent(self) -> int:
        """How many there are without a lease."""
        return len(self._permanent)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present request."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def add_some(self) -> None:
        """Add the next of the wanted subscriptions, in one request."""
        self._subscribe([None] * min(TOGETHER, self._wanted - len(self._permanent)))

    def change(self, changes: int) -> None:
        """Half of the changes subscribe; as many subscriptions are cancelled or expire."""
        count = (changes + 1) // 2
        leased = self._rng.random(count) < _LEASED
        spans = self._rng.uniform(*_LEASE, count)
        self._subscribe(
            [float(span) if has else None for has, span in zip(leased, spans, strict=True)]
        )
        for _ in range(min(int(count - leased.sum()), len(self._permanent))):
            with _ended_meanwhile():
                self._client.cancel(self._pick())
                self.cancelled += 1
        self._renew()

    def _run(self) -> None:
        try:
            self.trouble = _trouble("subscribing", self._change_until_stopped, self._stop)
        finally:
            self.complete.set()

    def _change_until_stopped(self) -> None:
        while len(self._permanent) < self._wanted and not self._stop.is_set():
            self.add_some()
        self.complete.set()
        before, changes = time.monotonic(), 0.0
        while not self._stop.wait(_CHANGE):
            now = time.monotonic()
            changes += min(now - before, _LATE) * self._churn
            before = now
            if int(changes):
                self.change(int(changes))
            changes %= 1

    def _subscribe(self, leases: list[float | None]) -> None:
        """Subscribe, for so many seconds each; None: without an end."""
        if not leases:
            return
        now = time.time()
        asked = [{"condition": next(self._conditions), "lease": lease} for lease in leases]
        for lease, line in zip(leases, self._client.subscribe_many(asked), strict=True):
            if line.id is None:
                raise TamisError(f"a subscription was refused: {line.error}")
            if lease is None:
                self._permanent.append(line.id)
            else:
                self._leases.append((now + lease, line.id))
        self.subscribed += len(leases)

    def _pick(self) -> int | str:
        """Take a random permanent subscription out of the list."""
        at = int(self._rng.integers(len(self._permanent)))
        self._permanent[at], self._permanent[-1] = self._permanent[-1], self._permanent[at]
        return self._permanent.pop()

    def _renew(self) -> None:
        now = time.time()
        for _ in range(len(self._leases)):  # a renewed one comes to the end
            if self._leases[0][0] > now + _SOON:
                break
            until, id = self._leases.popleft()
            if until > now + 1 and self._rng.random() < _RENEWED:
                with _ended_meanwhile():
                    self._client.renew(id, timedelta(seconds=_LEASE[1]))
                    self._leases.append((now + _LEASE[1], id))
                    self.renewed += 1

    def _draw(self, done: int) -> Iterator[str]:
        block, at = divmod(done, BLOCK)
        while True:
            yield from draw_conditions(block, self._start)[at:]
            block, at = block + 1, 0


@contextmanager
def _ended_meanwhile() -> Iterator[None]:
    """Pass over a subscription that the console, or its lease, has ended."""
    try:
        yield
    except ServiceError as why:
        if why.status != _NOT_FOUND:
            raise


def _without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _publish_line(line: str) -> ServiceCall[PublishReceipt]:
    """A publish of a text as it is."""
    return ServiceCall(
        "POST",
        "/v1/events",
        reader(PublishReceipt),
        headers={"Content-Type": "application/x-ndjson"},
        content=line.encode(),
    )


def _trouble(what: str, work: Callable[[], None], stop: Event) -> str | None:
    """Do some work; why it failed, for the screen. After a stop, the service may be gone."""
    try:
        work()
    except Exception as why:  # noqa: BLE001 - shown on the screen: a full disk, for instance
        return None if stop.is_set() else f"{what} failed: {why}"
    return None
