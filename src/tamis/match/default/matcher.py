"""The default matcher, `tamis`."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.shapes.shape_code import EventShape
from tamis.encode.terms import Terms
from tamis.files.arrays import Int32s, add_prefix, flatten, take_prefix
from tamis.files.saved_checks import array_of, require, whole, within
from tamis.match.base import Matches, Slots
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import (
    AnswersInBits,
    Plans,
    RunsInThreads,
    Savable,
    ServesReaders,
)
from tamis.match.default.index_updates import insert_all, remove_all
from tamis.match.default.passes.buffers import AnswerBuffers
from tamis.match.default.passes.frame import Framed, own
from tamis.match.default.planning.costs import costs
from tamis.match.default.planning.description import describe_plan
from tamis.match.default.planning.event_sample import EventSample, EventWatch
from tamis.match.default.planning.layout import SurveyedClauses, in_order, lay_out
from tamis.match.default.readers import TamisReader
from tamis.match.default.structure.buckets import LIVE as ENTRIES
from tamis.match.default.structure.family import BLOCK, LIVE, TOP, blocks_of
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import (
    BUCKET,
    DENSE,
    NOWHERE,
    SPARSE,
    RoutedIndex,
    restored,
    trimmed,
)
from tamis.match.default.structure.saved_structure import check_index
from tamis.match.default.workers import WorkTally
from tamis.match.plan import LINES, Plan

_AT_ONCE = 20_000  # up to this many clauses, a new layout is applied in one step
_TOO_OLD = 8  # a plan is worthless once there are this many times more clauses
_STEP = 16  # clauses moved for a batch: this times events^0.75
_FEWER = 32  # clauses moved per add or remove, which should stay fast


class Tamis(AnswersInBits, Plans, RunsInThreads, Savable, ServesReaders):
    """Places each clause where it costs least; matches a batch against all places together.

    A clause is placed in one of three structures. A clause that requires a rare value or a narrow
    range goes to a *bucket*: events look up their own keys and never touch other buckets. All other
    clauses go to one of two *families* of bitmaps. A family has a line of bits for each attribute
    and cell; the AND of an event's lines is the set of candidates. In the sparse family, each
    candidate is then compared with a record of its bounds. The dense family is for clauses that
    match often: there a bit is a match unless an interval begins or ends inside the event's cell.
    Clauses that cells cannot decide are verified.

    The expected cost of a place depends on the clauses, on the events seen so far, and on the time
    of each step on this machine. `plan` reports the decisions and the reasons. A new plan is made
    when the number of clauses has doubled, or when events differ much from those of the plan.
    Clauses then move to it, a few with each call. A plan based on a handful of events is
    provisional: once there are enough events, all clauses are laid out again in one step.

    With `threads`, a batch is split by events, or, if it has few events, by blocks of clauses. 0
    means one thread per processor. Without it, several callers match at once.

    add O(attributes × cells) bits or O(1) entries, remove likewise. match O(clauses × columns /
    512) lines, plus the candidates visited.
    """

    layout = 2
    table_type = PackedTable
    clauses: PackedTable
    tally_type = WorkTally
    _tally: WorkTally

    def __init__(self, **options: Any) -> None:
        self._begin_readers()
        super().__init__(**options)

    def clear(self) -> None:
        self._index: Framed[RoutedIndex] | None = None
        self._next: Framed[RoutedIndex] | None = None  # set while clauses move to it
        self._moving = np.zeros(0, np.int64)  # slots that may still have to move, next one last
        self._laid_out = 0  # clauses at the time of the plan
        self._watch = EventWatch()
        self._came = 0  # clauses added since the plan
        self._width = 0  # attributes known to the plan
        self._planning: Future[tuple[RoutedIndex, Slots, EventSample]] | None = None
        self._bits: tuple[Int32s, Int32s] | None = None
        self._make_buffers()

    def _begin_readers(self) -> None:
        self._own = TamisReader(self)  # for those who call the matcher itself
        self._readers, self._counting = [self._own], Lock()

    def _make_buffers(self) -> None:
        """Create the threads and buffers, which are not pickled."""
        for each in self._readers:
            each.count(self._tally)
            each.clear()
        self._workers = self._own.workers
        self._rows = AnswerBuffers(np.uint64)

    def rebuild(self) -> None:
        """Discard the index, because Ctrl-C or lack of memory interrupted a change.

        The clause table is complete. The next batch lays all clauses out again.
        """
        self._index = self._next = self._planning = None
        self._changed()
        self._moving = np.zeros(0, np.int64)

    def reset(self) -> None:
        self._changed()
        super().reset()

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__, _planning=None, _tally=self.tally)
        for name in ("_own", "_readers", "_counting", "_workers", "_rows"):
            del kept[name]
        for name in ("_index", "_next"):
            kept[name] = None if kept[name] is None else kept[name].record  # without addresses
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._begin_readers()
        self._make_buffers()
        self.clauses.own()
        for name in ("_index", "_next"):
            if kept[name] is not None:
                setattr(self, name, Framed(own(kept[name])))

    @property
    def nbytes(self) -> int:
        return self.clauses.nbytes + sum(
            part.nbytes for index in self._indexes() for part in flatten(index.record).values()
        )

    @property
    def tally(self) -> WorkTally:
        """The work so far. That of readers is added when somebody asks."""
        if self._counting.acquire(blocking=False):  # else another thread is about to add it
            try:
                for each in self._readers:
                    each.count(self._tally)
            finally:
                self._counting.release()
        return self._tally

    def reader(self) -> TamisReader:
        made = TamisReader(self)
        self._readers.append(made)
        return made

    def _changed(self) -> None:
        """The index or the clauses have changed: forget what depends on them."""
        self._bits = None
        for each in self._readers:
            each.forget()

    # -- events ------------------------------------------------------------------------------------

    def match_shape(self, shape: EventShape) -> Int32s | None:
        return self._own.match_shape(shape)

    def find(self, batch: EventBatch) -> Matches:
        self._prepare(batch)
        return self._own.find(batch)

    def find_bits(self, batch: EventBatch) -> Bitmaps:
        self._prepare(batch)
        if self._next is not None:  # with two indexes there is no single numbering of bits
            return Bitmaps.of(self.find(batch), self.clauses.live_slots())
        assert self._index is not None
        index = self._index.record
        if self._bits is None:
            self._bits = self._number_bits(index)
        slots, bit_of = self._bits
        many, width = len(batch), -(-len(slots) // 64)
        words = self._rows.take(many * width)
        self._rows.keep(words, many * width)
        words = words[: many * width].reshape(many, width)
        places = blocks_of(index.dense) * BLOCK // 64 if index.dense.head[LIVE] else 0
        words[:, places:] = 0  # the dense family overwrites all of its own words
        self._workers.match_bits(index, self.clauses, batch.pairs, self.threads, words, bit_of)
        return Bitmaps(words, slots)

    def _number_bits(self, index: RoutedIndex) -> tuple[Int32s, Int32s]:
        """The slot of each bit (places of the dense family first), and the bit of each slot."""
        places = BLOCK * blocks_of(index.dense) if index.dense.head[LIVE] else 0
        others = np.flatnonzero((index.kind != NOWHERE) & (index.kind != DENSE))
        slots = np.full(places + len(others), -1, np.int32)
        taken = int(index.dense.head[TOP]) if places else 0
        slots[:taken] = np.maximum(index.dense.slot_of[:taken], -1)
        slots[places:] = others
        bit_of = np.zeros(len(index.kind), np.int32)
        used = np.flatnonzero(slots >= 0)
        bit_of[slots[used]] = used
        return slots, bit_of

    # -- clauses -----------------------------------------------------------------------------------

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._changed()
        self._came += len(slots)
        if self._index is None:
            return  # the first batch of events lays out all clauses together
        if self._next is None:
            self._index = insert_all(self._index, self.clauses.view, slots)
        else:
            self._next = insert_all(self._next, self.clauses.view, slots)
            self._move(_FEWER)

    def drop_clauses(self, slots: Slots) -> None:
        self._changed()
        for index in self._indexes():
            kind = index.record.kind  # each clause is in one of the two indexes
            mine = slots[slots < len(kind)]
            remove_all(index, self.clauses.view, mine[kind[mine] != NOWHERE])
        if self._next is not None:
            self._move(_FEWER)

    def _indexes(self) -> list[Framed[RoutedIndex]]:
        return [index for index in (self._index, self._next) if index is not None]

    # -- plans -------------------------------------------------------------------------------------

    @property
    def planned(self) -> bool:
        return self._index is not None

    def plan(self, slots: Slots | None = None, lines: int = LINES) -> Plan:
        indexes = [index.record for index in self._indexes()]
        return describe_plan(
            self.clauses, indexes, self._watch.planned_for.events, self.nbytes, slots, lines
        )

    def _prepare(self, batch: EventBatch) -> None:
        """Make sure that there is a suitable plan before events are matched."""
        if self._index is None or self._workers.forked:
            self._planning = None  # a pending plan would come too late, or never after a fork
        if self._next is not None:
            # Moving takes about as long as matching: a batch moves many, a single event few.
            self._move(max(_FEWER, int(_STEP * len(batch) ** 0.75)))
        elif self._planning is not None:
            if self._planning.done():
                self._adopt()
        else:
            must = self._index is None or self._stale()
            if self._watch.see(batch, must=must) and (
                must or self._watch.enough or self._watch.differs(self.clauses.width)
            ):
                self._plan()

    def settle(self) -> None:
        """Finish the pending plan and move all clauses to it. Without a plan, make one."""
        if self._index is None and len(self):
            self._prepare(EventBatch(0, columns={}))
        if self._workers.forked:
            self._planning = None
        if self._planning is not None:
            self._adopt()
        while self._next is not None:
            self._move(4096)

    def _adopt(self) -> None:
        """Switch to the plan made in the background. If planning failed, keep the old plan."""
        assert self._planning is not None
        planning, self._planning = self._planning, None
        try:
            made = planning.result()
        except Exception:  # noqa: BLE001 - for example out of memory; a later plan may succeed
            return
        self._take_over(*made)

    def _stale(self) -> bool:
        """Whether the clauses have changed too much since the plan was made."""
        many, laid_out = len(self.clauses), self._laid_out
        wider = self.clauses.width > self._width and self._came > laid_out // 64
        return wider or self._came > laid_out + 64 or many < laid_out // 4

    def _plan(self) -> None:
        """Make a new plan: synchronously if that is quick, else in the background."""
        asked, sample = SurveyedClauses.of(self.clauses), self._watch.sample
        width, slots, view = self.clauses.width, self.clauses.slots, self.clauses.view
        if self._watch.enough or asked.live > _TOO_OLD * self._laid_out:
            self._index = None  # starting over is faster than moving every clause from a bad place
        self._laid_out, self._came, self._width = asked.live, 0, width

        def make() -> tuple[RoutedIndex, Slots, EventSample]:
            new = lay_out(asked, sample, costs(asked.live), width, slots)
            return new, in_order(new, view), sample

        if self._index is None or asked.live <= _AT_ONCE:
            self._take_over(*make())
        else:
            self._planning = self._workers.beside(make)

    def _take_over(self, new: RoutedIndex, order: Slots, sample: EventSample) -> None:
        """Switch to a new index, in one step or incrementally."""
        self._planning = None
        live = self.clauses.live_slots()
        late = live[~np.isin(live, order)]  # added while the plan was being made
        try:
            if self._index is None or len(order) <= _AT_ONCE:
                every = np.concatenate([order[np.isin(order, live)], late])
                self._index = insert_all(Framed(new), self.clauses.view, every)
            else:
                self._next = Framed(new)
                self._moving = np.concatenate([order, late])[::-1].copy()
        except BaseException:
            self.rebuild()
            raise
        self._watch.planned(sample)
        self._changed()

    def _move(self, many: int) -> None:
        """Move some clauses to the next index. When all have moved, it becomes the index."""
        assert self._next is not None
        assert self._index is not None
        try:
            some, self._moving = self._moving[-many:][::-1], self._moving[:-many]
            kind = self._index.record.kind
            some = some[some < len(kind)]
            some = some[kind[some] != NOWHERE]  # the others were removed, or added to the next
            remove_all(self._index, self.clauses.view, some)
            self._next = insert_all(self._next, self.clauses.view, some)
            self._changed()
            if not len(self._moving):
                self._index, self._next = self._next, None
        except BaseException:
            self.rebuild()
            raise

    # -- saving ------------------------------------------------------------------------------------

    def index_arrays(self) -> dict[str, NDArray[Any]]:
        if self._index is None and self._planning is None:
            return {}  # no plan yet: the process that opens it makes one for its own events
        self.settle()
        if self._index is None:
            return {}
        saved, sample = flatten(trimmed(self._index.record)), self._watch.planned_for
        arrays: dict[str, NDArray[Any]] = add_prefix("index", saved)
        return arrays | {"sample.attribute": sample.attribute, "sample.code": sample.code}

    def index_facts(self) -> dict[str, Any]:
        return {
            "laid_out": None if self._index is None else self._laid_out,
            "events": self._watch.planned_for.events,
        }

    def restore_index(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        if facts["laid_out"] is not None:
            self._index = Framed(restored(take_prefix("index", arrays)))
            self._laid_out = whole(facts, "laid_out")
            self._width = len(self._index.record.cells.bound)
            sample = array_of(arrays, "sample.attribute", np.int32), array_of(arrays, "sample.code")
            self._watch.sample = EventSample(*sample, whole(facts, "events"))
            self._watch.planned(self._watch.sample)

    def check_saved(self) -> None:
        sample = self._watch.sample
        require(len(sample.attribute) == len(sample.code), "each pair of the sample has a code")
        within("sample.attribute", sample.attribute, 0, 2**31)
        if self._index is not None:
            check_index(self._index.record, self.clauses.live_slots(), self.clauses.width)

    # -- checks ------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        live = self.clauses.live_slots()
        if self._index is None:
            return
        homes = np.zeros(self.clauses.slots, np.int64)
        for framed in self._indexes():
            index = framed.record
            known = np.flatnonzero(index.kind != NOWHERE)
            homes[known] += 1
            assert int((index.kind == SPARSE).sum()) == index.sparse.head[LIVE]
            assert int((index.kind == DENSE).sum()) == index.dense.head[LIVE]
            assert int((index.kind == BUCKET).sum()) <= index.buckets.head[ENTRIES]
            for which, family in ((SPARSE, index.sparse), (DENSE, index.dense)):
                mine = np.flatnonzero(index.kind == which)
                assert (family.slot_of[index.place[mine]] == mine).all()
        assert (homes[live] == 1).all(), "every clause has one home"
        assert homes.sum() == len(live)
