"""The publisher of the demonstration: it appends lots to a log, and subscriptions come and go.

Whoever subscribes to "any furniture" would get hundreds of notifications a second. So the
subscribers here are more precise than those of the workload `auctions`: they use its long
conditions, each with one more predicate.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis import workload
from tamis.store import Log, SubscriptionSnapshot, cancel, renew, subscribe
from tamis.workload.auction_schema import ADJECTIVES, TAGS

BLOCK = 10_000  # conditions drawn at once
_PREDICATES = 4  # fewest predicates of a condition, before one is added
_TICK = 0.1  # seconds between two appends
_LATE = 1.0  # seconds: a machine that slept longer does not catch up
_LEASED = 0.25  # share of the new subscriptions that have a lease
_LEASE = (20.0, 40.0)  # seconds
_RENEWED = 0.5  # share of the leases that are renewed shortly before they expire
_SOON = 5.0  # seconds before expiry

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


def load_subscriptions(log: Log, subscriptions: int, start: datetime) -> None:
    """Add subscriptions to the log until it has `subscriptions`. Their ids count from 0."""
    done = log.counts(0)[1]
    while done < subscriptions:
        block, at = divmod(done, BLOCK)
        texts = draw_conditions(block, start)[at : at + subscriptions - done]
        log.change(subscribe(list(range(done, done + len(texts))), texts))
        done += len(texts)


class AuctionPublisher:
    """Appends lots and changes of subscriptions to a log, in a thread, until it is stopped.

    Args:
        log: the log.
        snapshot: the live subscriptions at the start; read once.
        rate: lots a second.
        churn: changes of subscriptions a second.
    """

    def __init__(self, log: Log, snapshot: SubscriptionSnapshot, rate: float, churn: float) -> None:
        self._log, self._rate, self._churn = log, rate, churn
        self.published = self.subscribed = self.cancelled = self.renewed = self.broken = 0
        self.trouble: str | None = None
        self._start = datetime.now(UTC)
        self._rng = np.random.default_rng(log.end)
        self._lots = workload.make("auctions", 0, start=self._start)
        self._permanent = [id for id, live in snapshot.items() if live.until is None]
        self._leases: deque[tuple[float, int]] = deque()
        self._next_id = max((int(id) for id in snapshot), default=-1) + 1
        self._conditions = self._draw()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its current append."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._publish_until_stopped()
        except Exception as why:  # noqa: BLE001 - shown on the screen: a full disk, for instance
            self.trouble = f"publishing failed: {why}"

    def _publish_until_stopped(self) -> None:
        before, broken_at = time.monotonic(), 0.0
        lots = changes = 0.0  # due, with fractions
        while not self._stop.wait(_TICK):
            now = time.monotonic()
            passed, before = min(now - before, _LATE), now
            lots, changes = lots + passed * self._rate, changes + passed * self._churn
            self._change(int(changes))
            self.publish(int(lots))
            lots, changes = lots % 1, changes % 1
            if now - broken_at > 1.0:
                broken_at = now
                self._publish_broken()

    def publish(self, lots: int) -> None:
        if lots:
            self._log.publish(self._lots.events(lots, seed=self._log.end))
            self.published += lots

    def _publish_broken(self) -> None:
        self._log.publish(pa.table({"json": [BROKEN[self.broken % len(BROKEN)]]}))
        self.broken += 1

    def _change(self, changes: int) -> None:
        """Half of the changes subscribe; as many subscriptions are cancelled or expire."""
        count = (changes + 1) // 2
        leased = self._rng.random(count) < _LEASED
        now = time.time()
        self._subscribe(leased.tolist(), now)
        going = [self._pick() for _ in range(int(count - leased.sum())) if self._permanent]
        if going:
            self._log.change(cancel(going))
            self.cancelled += len(going)
        self._renew(now)

    def _subscribe(self, leased: list[bool], now: float) -> None:
        ids: list[int] = []
        untils: list[datetime | None] = []
        for has_lease in leased:
            id, self._next_id = self._next_id, self._next_id + 1
            until = now + float(self._rng.uniform(*_LEASE)) if has_lease else None
            if until is None:
                self._permanent.append(id)
            else:
                self._leases.append((until, id))
            ids.append(id)
            untils.append(None if until is None else datetime.fromtimestamp(until, UTC))
        if ids:
            self._log.change(subscribe(ids, [next(self._conditions) for _ in ids], untils))
            self.subscribed += len(ids)

    def _pick(self) -> int:
        """Take a random permanent subscription out of the list."""
        at = int(self._rng.integers(len(self._permanent)))
        self._permanent[at], self._permanent[-1] = self._permanent[-1], self._permanent[at]
        return int(self._permanent.pop())

    def _renew(self, now: float) -> None:
        soon = []
        while self._leases and self._leases[0][0] < now + _SOON:
            until, id = self._leases.popleft()
            if until > now and self._rng.random() < _RENEWED:
                soon.append(id)
        if soon:
            until = now + _LEASE[1]
            self._log.change(renew(soon, datetime.fromtimestamp(until, UTC)))
            self._leases.extend((until, id) for id in soon)
            self.renewed += len(soon)

    def _draw(self) -> Iterator[str]:
        block = self._next_id // BLOCK + 1
        while True:
            yield from draw_conditions(block, self._start)
            block += 1
