"""The cost of each step in nanoseconds, from which `routes` chooses.

With few clauses any plan will do, so the usual (default) costs apply and a small engine starts
immediately. With many clauses the steps are measured on this machine, once per process. The timed
code is the code that matching runs, over small real indexes, so a faster kernel is also cheaper for
the planner. Each step accesses memory as it does with many clauses: a table of keys too large for
any cache, clauses at random places in a table, blocks that a thousand events pass over in turn. The
fastest of a few runs counts, because other load on the machine can only make a run slower. Measured
costs are clamped to within a factor of four of the usual ones, so that a machine that was briefly
busy cannot spoil a plan.

With TAMIS_COSTS=usual in the environment, the usual costs always apply. The same clauses and events
then give the same plan on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import numpy as np

from tamis.errors import MatcherError
from tamis.files.arrays import Floats, Int32s, Int64s
from tamis.index.clauses import SOME
from tamis.match.default.index_updates import insert_all
from tamis.match.default.passes.batch_pass import place_bits
from tamis.match.default.passes.bucket_pass import pass_buckets
from tamis.match.default.passes.buffers import (
    ChunkBuffers,
    doubts_for,
    empty_buffers,
    fitting_buffers,
)
from tamis.match.default.passes.event_arrays import Binding, Doubts, Events, find_cells, verify
from tamis.match.default.passes.family_pass import pass_sparse, sight
from tamis.match.default.passes.frame import Framed
from tamis.match.default.passes.vector import PACKED, WORDS
from tamis.match.default.structure.buckets import Buckets, no_buckets
from tamis.match.default.structure.cells import HIGHEST, cut
from tamis.match.default.structure.family import BLOCK
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import (
    DENSE_FROM,
    SPARSE_LINES,
    RoutedIndex,
    Schemes,
    empty_index,
    schemes_of,
)

_RUNS = 5
_EVENTS = 1000  # per batch
_VALUES = 1 << 40  # codes are below this
_KEYS = 1 << 20  # a table of 40 MB
_LOOKED_UP = 10  # attributes per event
_ENTRIES, _RUN = 1 << 13, 16  # clauses in buckets, and clauses per bucket
_CLAUSES, _TERMS = 1 << 17, 4  # a table of 13 MB
_VERIFIED = 20_000
_FAMILY, _COLUMNS = 4 * BLOCK, 10  # clauses of each of two kinds, and columns
_STEPS = 512  # distinct interval ends per attribute: few, to keep building the cells fast
_FAR = 1e9  # the cost of an unwanted route
_WORDS, _ROWS = 64 * WORDS, 256  # a bitmap of 32,768 bits for each of 256 events


class MeasuredCosts(NamedTuple):
    """Nanoseconds, in the order of `routes`."""

    probe: float
    visit: float
    verify: float
    line: float
    check: float
    bit: float


USUAL = MeasuredCosts(probe=20.0, visit=3.0, verify=25.0, line=0.5, check=12.0, bit=0.6)
_VARIABLE = "TAMIS_COSTS"
_FEW = 20_000  # with fewer clauses nothing is measured
_FACTOR = 4.0
_DENSE_FROM = 1 / 64  # share of events
_lock = Lock()
_known: list[MeasuredCosts] = []  # the costs of this machine, once measured
os.register_at_fork(after_in_child=lambda: globals().update(_lock=Lock()))  # may be held at a fork


def costs(clauses: int) -> Floats:
    """The costs for that many clauses. A layout fills in the rest (see `routes`)."""
    found = USUAL if _usual() or clauses < _FEW else measured()
    array = np.zeros(DENSE_FROM + 1)
    array[: len(found)] = found
    array[DENSE_FROM] = _DENSE_FROM
    return array


def measured() -> MeasuredCosts:
    """The costs of this machine. Measured on the first call."""
    with _lock:
        if not _known:
            _known.append(believed(measure()))
        return _known[0]


def believed(found: MeasuredCosts) -> MeasuredCosts:
    """The measured costs, clamped."""
    limits = zip(found, USUAL, strict=True)
    return MeasuredCosts(
        *(min(max(one, usual / _FACTOR), usual * _FACTOR) for one, usual in limits)
    )


def _usual() -> bool:
    wanted = os.environ.get(_VARIABLE) or "measured"
    if wanted not in ("usual", "measured"):
        raise MatcherError(f"{_VARIABLE} must be 'usual' or 'measured', got {wanted!r}")
    return wanted == "usual"


# -- measuring ------------------------------------------------------------------------------------


def measure() -> MeasuredCosts:
    """Measure all steps. Takes about 0.1 s."""
    rng = np.random.default_rng(1)
    line, check = _lines_and_checks(rng)
    return MeasuredCosts(_probe(rng), _visit(rng), _verify(rng), line, check, _bit(rng))


def _least(run: Callable[[int], object]) -> float:
    """Nanoseconds of the fastest run. The first run does not count: it may load code."""
    run(0)
    taken = []
    for i in range(1, _RUNS + 1):
        begun = perf_counter()
        run(i)
        taken.append(perf_counter() - begun)
    return 1e9 * min(taken)


def _probe(rng: np.random.Generator) -> float:
    """Look up a missing key in a large table."""
    empty = no_buckets()
    times = _KEYS // len(empty.key)
    # `tile` writes the pages: untouched zero pages are all one physical page, which is cached.
    buckets = empty._replace(key=np.tile(empty.key, times), bucket=np.tile(empty.bucket, times))
    schemes = _keyed_by(range(_LOOKED_UP), _LOOKED_UP)
    batches = [  # a new one for each run: keys looked up before are in the cache
        _events(rng.integers(_VALUES, size=(_EVENTS, _LOOKED_UP))) for _ in range(_RUNS + 1)
    ]
    buffers = _lookup_buffers(_LOOKED_UP)
    took = _least(lambda i: _pass(batches[i], buckets, schemes, buffers))
    return took / (_EVENTS * _LOOKED_UP)


def _visit(rng: np.random.Generator) -> float:
    """Visit a bucket entry and compare its two constraints with the event."""
    values = rng.integers(_VALUES, size=_ENTRIES // _RUN)
    low = rng.integers(_STEPS, size=(_ENTRIES, 3)) * (_VALUES // _STEPS)
    high = low + _VALUES // 8
    low[:, 0] = high[:, 0] = rng.permutation(np.repeat(values, _RUN))
    index = _index(low, high, _keyed_by([0], 3), np.zeros(0, np.int32))
    taken = []
    buffers = _lookup_buffers(3)
    for met in (True, False):
        codes = rng.integers(_VALUES, size=(_EVENTS, 3))
        if met:
            codes[:, 0] = rng.choice(values, _EVENTS)
        events = _events(codes)
        find_cells(index.cells, events)

        def run(_: int, events: Events = events) -> None:
            _pass(events, index.buckets, index.schemes, buffers)

        taken.append(_least(run))
    return (taken[0] - taken[1]) / (_EVENTS * _RUN)


def _verify(rng: np.random.Generator) -> float:
    """Verify a clause at a random place in the table. Most are decided by the third term."""
    low = rng.integers(_VALUES // 4, size=(_CLAUSES, _TERMS))
    table = _table(low, np.full_like(low, HIGHEST))
    events = _events(rng.integers(_VALUES // 4, size=(_EVENTS, _TERMS)))
    binding = Binding(np.zeros(2 * _TERMS, np.int32), np.zeros(_TERMS, np.int32))
    runs = _RUNS + 1
    who = np.sort(rng.integers(_EVENTS, size=_VERIFIED)).astype(np.int32)
    whom = rng.integers(_CLAUSES, size=(runs, _VERIFIED)).astype(np.int32)
    doubts = [
        Doubts(who.copy(), slots, np.empty_like(slots), np.array([_VERIFIED])) for slots in whom
    ]
    return _least(lambda i: verify(events, table.view, binding, doubts[i])) / _VERIFIED


def _lines_and_checks(rng: np.random.Generator) -> tuple[float, float]:
    """A line in blocks without candidates, and a candidate in blocks with many."""
    shares = np.repeat([0.3, 0.66], _FAMILY)[:, None]  # of values; leaves no clause, or 1 in 64
    wide = (shares * _STEPS).astype(np.int64)
    low = rng.integers(_STEPS - wide, size=(2 * _FAMILY, _COLUMNS))
    step = _VALUES // _STEPS
    columns = np.arange(_COLUMNS, dtype=np.int32)
    index = _index(low * step, (low + wide) * step, _keyed_by([], _COLUMNS), columns)
    events = _events(rng.integers(_VALUES, size=(_EVENTS, _COLUMNS)))
    each = find_cells(index.cells, events)
    buffers = fitting_buffers(empty_buffers(), index, _COLUMNS, _EVENTS, len(events.code))
    sight(index.cells, index.sparse, events, each, buffers.sparse)
    out = np.empty((2, _EVENTS * _FAMILY // 4), np.int32)
    doubts = doubts_for(out.shape[1])

    def passing(first: int, last: int) -> tuple[float, int]:
        """Nanoseconds for some blocks, and the number of pairs found."""

        def run(_: int) -> int:
            doubts.many[0] = 0
            found = pass_sparse(
                index.sparse, buffers.sparse, events.several, (first, last),
                buffers.candidates, out[0], out[1], doubts,
            )  # fmt: skip
            return found + int(doubts.many[0])

        return _least(run), run(0)

    half = _FAMILY // BLOCK
    idle, _ = passing(0, 0)  # the call alone
    lines, none = passing(0, half)
    checks, pairs = passing(half, 2 * half)
    return (lines - idle) / (_EVENTS * half * _COLUMNS), (checks - lines) / max(1, pairs - none)


def _bit(rng: np.random.Generator) -> float:
    """Write the slot of a set bit, in a bitmap where one bit in eight is set."""
    words = rng.integers(1 << 64, size=(3, _ROWS * _WORDS), dtype=np.uint64)
    words = words[0] & words[1] & words[2]
    counts = np.bitwise_count(words).reshape(_ROWS, _WORDS).sum(axis=1, dtype=np.int64)
    slot_of = rng.permutation(64 * _WORDS).astype(np.int32)
    ends = np.cumsum(counts)
    out = np.empty(int(ends[-1]) + PACKED, np.int32)
    cursors = [ends - counts for _ in range(_RUNS + 1)]
    took = _least(lambda i: place_bits(words, _WORDS, slot_of, cursors[i], ends, out))
    return took / int(ends[-1])


# -- test data ------------------------------------------------------------------------------------


def _table(low: Int64s, high: Int64s) -> PackedTable:
    """A table of clauses with one interval per attribute."""
    table = PackedTable()
    many, terms = low.shape
    table.add(
        np.arange(many),
        np.arange(many + 1) * terms,
        (
            np.tile(np.arange(terms, dtype=np.int32), many),
            np.tile(np.arange(terms, dtype=np.int16), many),
            np.full(many * terms, SOME, np.int8),
            low.ravel(),
            high.ravel(),
        ),
    )
    return table


def _index(low: Int64s, high: Int64s, schemes: Schemes, columns: Int32s) -> RoutedIndex:
    """An index of such clauses: in buckets if there are keys, else in the sparse family."""
    many, width = low.shape
    none = np.zeros(0, np.int32)
    attribute = np.tile(np.arange(width, dtype=np.int32), many)
    cells = cut(width, attribute, low.ravel(), high.ravel(), none, np.zeros(0, np.int64), 0)
    costs = np.ones(DENSE_FROM + 1)
    costs[SPARSE_LINES], costs[DENSE_FROM] = _FAR, 2.0
    index = empty_index(cells, schemes, costs, columns, none, many)
    return insert_all(Framed(index), _table(low, high).view, np.arange(many)).record


def _keyed_by(attributes: Iterable[int], width: int) -> Schemes:
    """Schemes whose keys are single values of these attributes."""
    grains = np.zeros(width, np.int64)
    grains[list(attributes)] = 1
    return schemes_of(grains, [], np.zeros(0))._replace(used=grains.copy())


def _events(codes: Int64s) -> Events:
    """Events with one value per attribute."""
    many, width = codes.shape
    return Events(
        np.arange(many + 1) * width,
        np.tile(np.arange(width, dtype=np.int32), many),
        codes.ravel(),
        np.ones(many * width, np.int32),
        np.zeros(many, np.uint8),
    )


def _lookup_buffers(width: int) -> ChunkBuffers:
    """Buffers for looking up buckets."""
    return empty_buffers()._replace(
        binding=Binding(np.zeros(2 * width, np.int32), np.zeros(width, np.int32)),
        met=np.empty(_EVENTS * _RUN, np.int32),
        doubts=doubts_for(_EVENTS * _RUN),
        runs=np.empty(_EVENTS, np.int64),
    )


def _pass(events: Events, buckets: Buckets, schemes: Schemes, buffers: ChunkBuffers) -> None:
    buffers.doubts.many[0] = 0
    pass_buckets(
        events,
        buckets,
        schemes,
        buffers.binding,
        buffers.keys,
        buffers.met,
        buffers.runs,
        buffers.doubts,
    )
