"""The publisher of the demonstration: lots go into a log, and people subscribe and leave.

Whoever waits for "any furniture" would be notified of hundreds of lots a second, which nobody
wants. So the people here ask more precisely than those of the workload `auctions`: of its
conditions the long ones are taken, each with a word more.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis import workload
from tamis.store import Log, Snapshot, cancel, renew, subscribe
from tamis.workload.auction_schema import ADJECTIVES, TAGS

BLOCK = 10_000  # conditions that are made at once
_PREDICATES = 4  # of a condition, at least, before a word more is asked for
_TICK = 0.1  # seconds between two appends
_LATE = 1.0  # seconds: what was missed beyond that, by a machine that slept, stays missed
_LEASES = 0.25  # of those who subscribe, with a lease
_LEASE = (20.0, 40.0)  # seconds
_RENEWED = 0.5  # of the leases, shortly before they run out
_SOON = 5.0  # seconds: that short

# Events that are wrong on purpose, one a second in turn: half a text, a wrong word, no price.
BROKEN = (
    '{"event_type": "furniture", "title": "Sturdy oak tab',
    json.dumps({"event_type": "furniture", "title": "Fine oak desk", "price": "a bargain",
                "quantity": 1, "closes": "2026-01-31T12:00:00Z", "category": "desk"}),
    json.dumps({"event_type": "toys", "title": "Old red train", "quantity": 1,
                "closes": "2026-01-31T12:00:00Z", "category": "train"}),
)  # fmt: skip


def wishes(block: int, start: datetime) -> list[str]:
    """The conditions of a block of subscriptions; lots begin to close at `start`."""
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
        _precise(text, str(adjective), str(tag))
        for text, adjective, tag in zip(chosen, adjectives, tags, strict=True)
    ]


def _precise(text: str, adjective: str, tag: str) -> str:
    """With a predicate on an attribute that is not asked for yet.

    >>> _precise("category <= bed and price < 50", "Grand", "oak")
    'category <= bed and price < 50 and tags contains "oak"'
    """
    if "tags " not in text:
        return f'{text} and tags contains "{tag}"'
    if "title " not in text:
        return f'{text} and title starts with "{adjective}"'
    return text


def bulk(
    log: Log, subscriptions: int, start: datetime, told: Callable[[int], object] | None = None
) -> None:
    """Subscribe the first ones, those that are not in the log yet; their ids count from 0."""
    done = log.counts(0)[1]
    while done < subscriptions:
        block, at = divmod(done, BLOCK)
        texts = wishes(block, start)[at : at + subscriptions - done]
        log.change(subscribe(list(range(done, done + len(texts))), texts))
        done += len(texts)
        if told is not None:
            told(done)


class Auctioneer:
    """Appends lots and changes to a log, in a thread of its own, until it is stopped.

    Args:
        log: to append to.
        snapshot: who is subscribed when it begins; it is read once.
        rate: lots a second.
        churn: changes of subscriptions a second.
    """

    def __init__(self, log: Log, snapshot: Snapshot, rate: float, churn: float) -> None:
        self._log, self._rate, self._churn = log, rate, churn
        self.published = self.came = self.left = self.renewed = self.broken = 0
        self.trouble: str | None = None
        self._start = datetime.now(UTC)
        self._rng = np.random.default_rng(log.end)
        self._lots = workload.make("auctions", 0, start=self._start)
        self._staying = [id for id, live in snapshot.items() if live.until is None]
        self._leases: deque[tuple[float, int]] = deque()
        self._next = max((int(id) for id in snapshot), default=-1) + 1
        self._wishes = self._fresh()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="auctioneer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after what is being appended."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as why:  # noqa: BLE001 - shown on the screen: a full disk, for instance
            self.trouble = f"no more lots: {why}"

    def _work(self) -> None:
        began, told = time.monotonic(), 0.0
        lots = changes = 0.0  # owed, in parts too
        while not self._stopping.wait(_TICK):
            now = time.monotonic()
            passed, began = min(now - began, _LATE), now
            lots, changes = lots + passed * self._rate, changes + passed * self._churn
            self._change(int(changes))
            self.publish(int(lots))
            lots, changes = lots % 1, changes % 1
            if now - told > 1.0:
                told = now
                self._break()

    def publish(self, lots: int) -> None:
        """Publish some lots at once."""
        if lots:
            self._log.publish(self._lots.events(lots, seed=self._log.end))
            self.published += lots

    def _break(self) -> None:
        self._log.publish(pa.table({"json": [BROKEN[self.broken % len(BROKEN)]]}))
        self.broken += 1

    def _change(self, changes: int) -> None:
        """Half of them come; as many go, by themselves or because their lease runs out."""
        coming = (changes + 1) // 2
        leases = self._rng.random(coming) < _LEASES
        now = time.time()
        ids: list[int] = []
        untils: list[datetime | None] = []
        for leased in leases.tolist():
            id, self._next = self._next, self._next + 1
            until = now + float(self._rng.uniform(*_LEASE)) if leased else None
            if until is None:
                self._staying.append(id)
            else:
                self._leases.append((until, id))
            ids.append(id)
            untils.append(None if until is None else datetime.fromtimestamp(until, UTC))
        if ids:
            self._log.change(subscribe(ids, [next(self._wishes) for _ in ids], untils))
            self.came += len(ids)
        going = [self._leaving() for _ in range(int(coming - leases.sum())) if self._staying]
        if going:
            self._log.change(cancel(going))
            self.left += len(going)
        self._renew(now)

    def _leaving(self) -> int:
        at = int(self._rng.integers(len(self._staying)))
        self._staying[at], self._staying[-1] = self._staying[-1], self._staying[at]
        return int(self._staying.pop())

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

    def _fresh(self) -> Iterator[str]:
        block = self._next // BLOCK + 1
        while True:
            yield from wishes(block, self._start)
            block += 1
