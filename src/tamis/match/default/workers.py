"""Threads over a batch: each finds the matches of its work unit, then all write them in parallel.

Kernels release the GIL, so threads run in parallel. A batch with enough events is split by events.
A few events over many clauses are split by blocks of the sparse family instead. While clauses move
from one index to the next, every event is matched against both indexes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Condition
from typing import NamedTuple, TypeVar

import numpy as np

from tamis.encode.batch import Pairs
from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words
from tamis.match.base import Tally
from tamis.match.default.passes.batch_pass import (
    find_matches,
    mark_bits,
    match_chunk,
    write_matches,
)
from tamis.match.default.passes.buffers import (
    DONE,
    OUT,
    ChunkBuffers,
    empty_buffers,
    fitting_buffers,
    larger_buffers,
)
from tamis.match.default.passes.event_arrays import LINES, VERIFIED
from tamis.match.default.passes.frame import Frame, Framed
from tamis.match.default.passes.vector import PACKED, WORDS
from tamis.match.default.structure.family import LIVE, blocks_of
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import RoutedIndex

_CHUNK = 1024  # events processed together
_BITMAPS = 32 * 2**20  # bytes of bitmaps per chunk: they are soon read again, from the cache
_APART = 64  # minimum events per thread when a batch is split by events
_BLOCKS = 4096  # minimum blocks per thread when split by blocks: starting a thread takes time
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass
class WorkTally(Tally):
    """The number of times each step of the cost model was executed (see `MeasuredCosts`)."""

    lines: int = 0  # bitmap lines of 512 bits read
    probes: int = 0  # bucket keys looked up
    visits: int = 0  # bucket entries visited
    checks: int = 0  # candidates of the sparse family compared with their bounds
    verified: int = 0  # candidates verified against the clause table

    def count(self, work: Int64s) -> None:
        """Add the counters of a chunk: lines, probes, visits, checks, verified."""
        lines, probes, visits, checks, verified = work.tolist()
        self.lines += lines
        self.probes += probes
        self.visits += visits
        self.checks += checks
        self.verified += verified
        self.nodes += lines + probes
        self.subscriptions += visits + checks
        self.predicates += checks + verified  # at least one each


class WorkUnit(NamedTuple):
    """Some events to be matched against some or all blocks of one index."""

    of: RoutedIndex
    first: int
    last: int
    blocks: tuple[int, int]


class PartialAnswer(NamedTuple):
    """What a worker found for a work unit. The slots are in the worker's buffers."""

    counts: Int64s
    pairs: int
    verified: int
    width: int  # words per event in a bitmap


class MatchWorker:
    """The buffers of one thread, and the kernel calls that use them."""

    def __init__(self) -> None:
        self._buffers = Framed(empty_buffers())
        # Counters of the last chunk. This array stays when other buffers are replaced.
        self.work = self.buffers.doubts.many[LINES : 1 + VERIFIED]

    @property
    def buffers(self) -> ChunkBuffers:
        """The buffers, where `find_matches` leaves its results."""
        return self._buffers.record

    @property
    def frame(self) -> Frame:
        """The frame of the buffers."""
        return self._buffers.frame

    def fit(self, index: RoutedIndex, width: int, events: int, pairs: int) -> None:
        """Make the buffers large enough for so many events and pairs."""
        buffers = fitting_buffers(self.buffers, index, width, events, pairs)
        if buffers is not self.buffers:
            self._buffers = Framed(buffers)

    def find_matches(
        self, part: WorkUnit, table: PackedTable, pairs: Pairs, words: Words | None = None
    ) -> PartialAnswer:
        """Match a work unit. Bitmaps go to `words`, one row per event, or stay in the buffers."""
        index = part.of
        starts, attribute, code = cut(pairs, part.first, part.last)
        self.fit(index, table.width, part.last - part.first, len(code))
        counts = np.empty(part.last - part.first, np.int64)
        dense = bool(index.dense.head[LIVE]) and part.blocks[0] == 0
        stride = WORDS * blocks_of(index.dense) if dense else 0
        target, row = self.buffers.words, stride
        if words is not None:
            target, row = words.reshape(-1), words.shape[1]
        while True:
            status, sure, verified = find_matches(
                index, table.view, starts, attribute, code, self.buffers, part.blocks,
                target, row, counts,
            )  # fmt: skip
            if status == DONE:
                return PartialAnswer(counts, sure, verified, stride)
            self.enlarge(status)

    def enlarge(self, lacking: int) -> None:
        """Double the buffer that was too small."""
        self._buffers = Framed(larger_buffers(self.buffers, lacking))

    def match_chunk(
        self, index: Framed[RoutedIndex], table: PackedTable, pairs: Pairs, counts: Int64s,
        out: Int32s, used: int,
    ) -> tuple[Int32s, int]:  # fmt: skip
        """Find and write the matches in one call. Returns `out`, or a longer array, and its end."""
        starts, attribute, code = pairs
        self.fit(index.record, table.width, len(counts), len(code))
        clauses = table.view
        while True:
            frames = (index.frame, self._buffers.frame)
            status, end = match_chunk(frames, clauses, starts, attribute, code, counts, out, used)
            if status == DONE:
                return out, end
            if status == OUT:
                out = wider(out, used, end)
            else:
                self.enlarge(status)


class WorkerPool:
    """All threads of a matcher. They start when there is work for more than one thread."""

    def __init__(self, tally: WorkTally) -> None:
        self._tally = tally
        self._workers = [MatchWorker()]
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0  # the process that started the pool: threads do not survive a fork

    @property
    def first(self) -> MatchWorker:
        """The worker that runs in the caller's thread."""
        return self._workers[0]

    def match(
        self, indexes: Sequence[Framed[RoutedIndex]], table: PackedTable, pairs: Pairs,
        threads: int, out: Int32s,
    ) -> tuple[Int64s, Int32s, int]:  # fmt: skip
        """The answer to a batch: the count of each event, the slots, and their number."""
        many = len(pairs.starts) - 1
        counts = np.empty(many, np.int64)
        used = 0
        if len(indexes) == 1 and threads == 1:
            if many == 1:  # shortcut: for a single event, every Python step is noticeable
                out, used = self.first.match_chunk(indexes[0], table, pairs, counts, out, 0)
                self._tally.count(self.first.work)
                return counts, out, used
            step = events_at_once(indexes[0].record)
            for at in range(0, many, step):
                end = min(at + step, many)
                out, used = self.first.match_chunk(
                    indexes[0], table, cut(pairs, at, end), counts[at:end], out, used
                )
                self._tally.count(self.first.work)
            return counts, out, used
        for parts in _rounds([each.record for each in indexes], many, threads):
            workers = self._enough(len(parts))
            found = self._each(
                lambda job: job[0].find_matches(job[1], table, pairs),
                zip(workers, parts, strict=True),
                threads,
            )
            self._count(workers)
            first, last = parts[0].first, parts[-1].last
            total = np.zeros(last - first, np.int64)
            for part, here in zip(parts, found, strict=True):
                total[part.first - first : part.last - first] += here.counts
            counts[first:last] = total
            begin = used + np.cumsum(total) - total
            used += int(total.sum())
            if used + PACKED > len(out):
                out = wider(out, used - int(total.sum()), used + PACKED)
            jobs = []
            for worker, part, here in zip(workers, parts, found, strict=True):
                mine = slice(part.first - first, part.last - first)
                sizes = (here.pairs, here.verified, here.width)
                slot_of, starts = part.of.dense.slot_of, begin[mine].copy()
                given = (worker.buffers, slot_of, sizes, here.counts, starts, out)
                jobs.append(partial(write_matches, *given))
                begin[mine] += here.counts
            self._each(lambda job: job(), jobs, threads)
        return counts, out, used

    def match_bits(
        self, index: RoutedIndex, table: PackedTable, pairs: Pairs, threads: int, words: Words,
        bit_of: Int32s,
    ) -> None:  # fmt: skip
        """Write the answer to a batch as bits into the rows of `words`, which must be 0."""
        for parts in _rounds([index], len(words), threads, by_blocks=False):
            workers = self._enough(len(parts))

            def one(job: tuple[MatchWorker, WorkUnit]) -> None:
                worker, part = job
                rows = words[part.first : part.last]
                found = worker.find_matches(part, table, pairs, rows)
                both = (found.pairs, found.verified)
                mark_bits(worker.buffers, both, bit_of, rows.reshape(-1), rows.shape[1], len(rows))

            self._each(one, zip(workers, parts, strict=True), threads)
            self._count(workers)

    def _count(self, workers: Sequence[MatchWorker]) -> None:
        for worker in workers:
            self._tally.count(worker.work)

    def beside(self, do: Callable[[], _R]) -> Future[_R]:
        """Run a function in a background thread."""
        return _begun(self._threads(), do)

    @property
    def forked(self) -> bool:
        """Whether background jobs were started before a fork and will never finish here."""
        return self._pool is not None and self._process != os.getpid()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(thread_name_prefix="tamis")
            self._process = os.getpid()
        return self._pool

    def _enough(self, many: int) -> list[MatchWorker]:
        while len(self._workers) < many:
            self._workers.append(MatchWorker())
        return self._workers[:many]

    def _each(self, do: Callable[[_T], _R], jobs: Iterable[_T], threads: int) -> list[_R]:
        every = list(jobs)
        if len(every) == 1 or threads == 1:
            return [do(job) for job in every]
        pool = self._threads()
        together = _Together()
        try:
            others = [_begun(pool, partial(together.do, partial(do, job))) for job in every[1:]]
            return [do(every[0]), *(other.result() for other in others)]
        except BaseException:
            together.end()
            raise


class _Together:
    """The jobs of one call, which may be interrupted at any moment, even during a submit.

    Running jobs use buffers that the next call reuses, so an interrupted call waits for them. Jobs
    that have not started must not start any more.
    """

    def __init__(self) -> None:
        self._change = Condition()
        self._running = 0
        self._over = False

    def do(self, job: Callable[[], _R]) -> _R:
        """Run a job, unless the call is over and the result is no longer needed."""
        with self._change:
            if self._over:
                raise CancelledError
            self._running += 1
        try:
            return job()
        finally:
            with self._change:
                self._running -= 1
                self._change.notify_all()

    def end(self) -> None:
        """Prevent new jobs from starting, and wait for running ones."""
        try:
            with self._change:
                self._over = True
                while self._running:
                    self._change.wait()
        except BaseException:  # Ctrl-C while waiting
            self.end()
            raise


def _begun(pool: ThreadPoolExecutor, do: Callable[[], _R]) -> Future[_R]:
    """Submit to the pool. Run it here if the interpreter no longer starts threads."""
    try:
        return pool.submit(do)
    except RuntimeError:  # the main thread has ended while other threads still run
        done: Future[_R] = Future()
        done.set_result(do())
        return done


def _rounds(
    indexes: Sequence[RoutedIndex], many: int, threads: int, *, by_blocks: bool = True
) -> list[list[WorkUnit]]:
    """The work units of a batch, in rounds. The units of a round run in parallel."""
    # Without `by_blocks` the bitmaps are the answer: they are not read again and need no cache.
    step = min(events_at_once(index) for index in indexes) if by_blocks else _CHUNK
    if threads > 1 and many >= threads * _APART:
        step = min(step, -(-many // threads))
        chunks = [(at, min(at + step, many)) for at in range(0, many, step)]
        return [
            [
                WorkUnit(index, *chunk, (0, blocks_of(index.sparse)))
                for chunk in chunks[at : at + threads]
                for index in indexes
            ]
            for at in range(0, len(chunks), threads)
        ]
    rounds: list[list[WorkUnit]] = []
    for at in range(0, many, step):
        parts: list[WorkUnit] = []
        for index in indexes:
            blocks = blocks_of(index.sparse)
            pieces = min(threads, blocks // _BLOCKS) if by_blocks else 1
            edges = np.linspace(0, blocks, max(1, pieces) + 1).astype(int).tolist()
            for first, last in pairwise(edges):
                parts.append(WorkUnit(index, at, min(at + step, many), (first, last)))
        rounds.append(parts)
    return rounds


def events_at_once(index: RoutedIndex) -> int:
    """The number of events whose bitmaps fit in the cache together."""
    if not index.dense.head[LIVE]:
        return _CHUNK
    return max(64, min(_CHUNK, _BITMAPS // max(1, 8 * WORDS * blocks_of(index.dense))))


def cut(pairs: Pairs, first: int, last: int) -> Pairs:
    """The pairs of the events `first` to `last - 1`."""
    starts, attribute, code = pairs
    if first == 0 and last == len(starts) - 1:
        return pairs
    inner = slice(int(starts[first]), int(starts[last]))
    return Pairs(starts[first : last + 1] - starts[first], attribute[inner], code[inner])


def wider(out: Int32s, used: int, size: int) -> Int32s:
    """A longer array that starts with the used part of the old one."""
    longer = np.empty(max(size, 2 * len(out)), np.int32)
    longer[:used] = out[:used]
    return longer
