"""A batch of events through a family: a block is read once, and all events pass over it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.match.default.passes.event_arrays import CHECKS, LINES, Doubts, Events
from tamis.match.default.passes.vector import (
    LANES,
    PACKED,
    TELLS,
    WORDS,
    above,
    and_lines,
    or_lines,
    popcount,
    prefetch,
    repeat,
    tell,
    trailing,
)
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import BLOCK, COLUMNS, EDGED, Family

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
_FEW = 4  # events whose lines are asked for one by one
_AHEAD = 6  # blocks
_SPAN = 64 * 1024  # blocks that one event takes at a time, for which there is room in `event`
_TILE = 8  # blocks whose results are written together
_WAITING = 1024  # candidates of one event are looked at when there are so many
ROUND = 256  # events between which candidates are looked at, so that these stay in cache
CANDIDATES = ROUND * (BLOCK + 1) + _WAITING + 64  # room that all may need, and to write past


class Sight(NamedTuple):
    """Events as one family sees them: a line of bitmap for each column, and a record."""

    lines: NDArray[np.uint16]
    lanes: NDArray[np.int16]  # or nothing


@kernel
def sight(cells: ValueCells, family: Family, events: Events, each: int, seen: Sight) -> None:
    """How a family sees events. `each` is what `find_cells` says: how many pairs all have, or 0."""
    base, column_of = family.base, family.column_of
    starts, attribute, _, cell_of_pair, _ = events
    lines, lanes = seen
    start, row_of_cell = cells.start, cells.row_of_cell
    columns = len(family.attribute)
    width = -(-columns // COLUMNS) * LANES
    records = len(lanes) > 0
    many = len(starts) - 1
    unbound = np.empty(width, np.int16)
    for i in range(width):
        lane = i % LANES
        value = 0 if lane == COLUMNS or lane == LANES - 1 else 1
        unbound[i] = value if lane < LANES // 2 else -value
    for e in range(many):
        for k in range(columns):
            lines[e * columns + k] = base[k]
        if records:
            for i in range(width):
                lanes[e * width + i] = unbound[i]
    if each > 0:  # all are of the same attributes: one after the other
        for j in range(each):
            a = attribute[j]
            if a >= len(column_of) or column_of[a] < 0:
                continue
            k, rows = column_of[a], row_of_cell[start[a] + a :]
            lane = k // COLUMNS * LANES + k % COLUMNS
            for e in range(many):
                cell = cell_of_pair[e * each + j]
                lines[e * columns + k] = base[k] + rows[np.uint64(cell - 1)]
                if records:
                    lanes[e * width + lane] = cell
                    lanes[e * width + lane + LANES // 2] = -cell
        return
    for e in range(many):
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            if a >= len(column_of) or column_of[a] < 0:
                continue
            k = column_of[a]
            cell = cell_of_pair[pair]
            lines[e * columns + k] = base[k] + row_of_cell[start[a] + a + cell - 1]
            if records:
                lane = e * width + k // COLUMNS * LANES + k % COLUMNS
                lanes[lane] = cell
                lanes[lane + LANES // 2] = -cell


@kernel
def zones(
    family: Family, lines: NDArray[np.uint16], several: NDArray[np.uint8], group: int, mask: Words
) -> None:
    """For each event, which of 64 blocks may have a match."""
    each = int(family.base[-1])
    columns = len(family.attribute)
    zone = family.zone[group * each : (group + 1) * each]
    for e in range(len(several)):
        left = ~np.uint64(0) if several[e] == 0 else np.uint64(0)
        for k in range(columns):
            left &= zone[lines[e * columns + k]]
        mask[e] = left


class CandidateBlocks(NamedTuple):
    """Room for what `pass_sparse` finds in one block, kept between calls.

    Of events: `mask`, which blocks they may match in, `whom`, those that may match in this one, and
    for those that do their line and which words of it. `place` and `event` are of candidates.
    """

    mask: Words
    whom: Int32s
    line: Words
    words: Int64s
    event: Int32s
    place: Int32s


@kernel
def pass_sparse(
    family: Family,
    seen: Sight,
    several: NDArray[np.uint8],
    blocks: tuple[int, int],
    candidates: CandidateBlocks,
    out_event: Int32s,
    out_slot: Int32s,
    doubts: Doubts,
) -> int:
    """Pairs of event and slot from some blocks, and pairs to be verified.

    Events with several values are left out. Gives how many pairs there are; -1 where there is no
    room for them, -2 where there is none for those to be verified.

    A block takes three steps: the AND, for all events; the bits that are left; their records. Each
    is a loop without much to guess for the processor. Records come from memory; they are asked
    for while the AND is under way (22 µs without, 9 µs with, for 350,000 clauses), and so is the
    next block. For a few events there is little of a block to be asked for: see `_pass_alone`.
    """
    if len(several) <= _FEW:
        return _pass_few(family, seen, several, blocks, candidates, out_event, out_slot, doubts)
    bits, records, slot_of = family.bits, family.records, family.slot_of
    columns = len(family.attribute)
    each = int(family.base[-1])
    width = -(-columns // COLUMNS) * LANES
    lines, lanes = seen
    mask, whom, line, words_of, event, place = candidates
    doubt_event, doubt_slot, _, doubt_many = doubts
    sure, doubtful = 0, doubt_many[0]
    group = -1
    found = ROUND  # lines are kept up to there, candidates from there on
    for block in range(blocks[0], blocks[1]):
        if block // 64 != group:
            group = block // 64
            zones(family, lines, several, group, mask)
        many = 0
        bit = np.uint64(block & 63)
        for e in range(len(several)):
            whom[many] = e
            many += int((mask[e] >> bit) & np.uint64(1))
        doubt_many[LINES] += many * columns
        base, record = WORDS * block * each, BLOCK * block * width
        at = 0
        while at < many:
            left = 0
            stop = min(many, at + ROUND)
            for i in range(at, stop):
                e = whom[i]
                words = and_lines(bits, base, lines, e * columns, columns, line, WORDS * left)
                words_of[left] = words
                event[left] = e
                left += words != 0
                for next_ in range(2 * i, 2 * i + 2):
                    if next_ < BLOCK:
                        prefetch(records, record + next_ * width)
                if i < each:
                    prefetch(bits, base + WORDS * (each + i))
            at = stop
            for i in range(left):
                e, words = event[i], words_of[i]
                begin = found
                while words != 0:
                    w = trailing(words)
                    words &= words - 1
                    word = line[WORDS * i + w]
                    first = BLOCK * block + 64 * w
                    if TELLS:
                        found = tell(word, first, place, found)
                    else:
                        while word != 0:
                            place[found] = first + trailing(word)
                            prefetch(records, np.int64(place[found]) * width)
                            found += 1
                            word &= word - np.uint64(1)
                while begin < found:
                    repeat(e, event, begin)
                    begin += PACKED
            if sure + found - ROUND > len(out_event):
                return -1
            if doubtful + found - ROUND > len(doubt_event):
                return -2
            doubt_many[CHECKS] += found - ROUND
            for i in range(ROUND, found):
                e, p = event[i], np.int64(place[i])
                verdict = above(lanes, e * width, records, p * width)
                for next_ in range(LANES, width, LANES):
                    verdict = min(
                        verdict, above(lanes, e * width + next_, records, p * width + next_)
                    )
                slot = slot_of[p]
                out_event[sure] = e
                out_slot[sure] = slot
                sure += verdict == 2
                doubt_event[doubtful] = e
                doubt_slot[doubtful] = slot
                doubtful += verdict == 1
            found = ROUND
    doubt_many[0] = doubtful
    return sure


@kernel
def _pass_few(
    family: Family,
    seen: Sight,
    several: NDArray[np.uint8],
    blocks: tuple[int, int],
    candidates: CandidateBlocks,
    out_event: Int32s,
    out_slot: Int32s,
    doubts: Doubts,
) -> int:
    """What `pass_sparse` does, for events one by one."""
    sure = 0
    for e in range(len(several)):
        first = blocks[0]
        while several[e] == 0 and first < blocks[1]:
            last = min(first + _SPAN, blocks[1])
            before = sure
            sure = _pass_alone(family, seen, e, (first, last), candidates, out_slot, sure, doubts)
            if sure < 0:
                return sure
            if sure > len(out_event):
                return -1
            out_event[before:sure] = e
            first = last
    return sure


@kernel
def _pass_alone(
    family: Family,
    seen: Sight,
    e: int,
    blocks: tuple[int, int],
    candidates: CandidateBlocks,
    out_slot: Int32s,
    sure: int,
    doubts: Doubts,
) -> int:
    """One event through some blocks; its slots go to `out_slot` from `sure` on.

    Everything is a cache miss here, so the blocks to be looked at are listed first, the lines of
    later ones are asked for while the AND of this one is taken, and candidates wait until there
    are some, their records on the way. (Lines of all blocks, asked for whether an event goes there
    or not, are twice as many, and took 60 µs in place of 45 for 350,000 clauses.)
    """
    bits, records, slot_of, zone = family.bits, family.records, family.slot_of, family.zone
    columns = len(family.attribute)
    each = int(family.base[-1])
    width = -(-columns // COLUMNS) * LANES
    lines, lanes = seen
    listed, place, line = candidates.event, candidates.place, candidates.line
    doubt_event, doubt_slot, _, doubt_many = doubts
    doubtful = doubt_many[0]
    mine = e * columns
    many = 0
    for group in range(blocks[0] // 64, -(-blocks[1] // 64)):
        left = ~np.uint64(0)
        for k in range(columns):
            left &= zone[group * each + lines[mine + k]]
        while left != 0:
            block = 64 * group + trailing(left)
            left &= left - np.uint64(1)
            listed[many] = block
            many += blocks[0] <= block < blocks[1]
    doubt_many[LINES] += many * columns
    for i in range(min(_AHEAD, many)):
        for k in range(columns):
            prefetch(bits, WORDS * (listed[i] * each + lines[mine + k]))
    found = 0
    for i in range(many):
        block = np.int64(listed[i])
        if i + _AHEAD < many:
            ahead = np.int64(listed[i + _AHEAD]) * each
            for k in range(columns):
                prefetch(bits, WORDS * (ahead + lines[mine + k]))
        words = and_lines(bits, WORDS * block * each, lines, mine, columns, line, 0)
        while words != 0:
            w = trailing(words)
            words &= words - 1
            word = line[w]
            while word != 0:
                place[found] = BLOCK * block + 64 * w + trailing(word)
                prefetch(records, np.int64(place[found]) * width)
                found += 1
                word &= word - np.uint64(1)
        if found < _WAITING and i < many - 1:
            continue
        if sure + found > len(out_slot):
            return -1
        if doubtful + found > len(doubt_event):
            return -2
        doubt_many[CHECKS] += found
        for j in range(found):
            p = np.int64(place[j])
            verdict = above(lanes, e * width, records, p * width)
            for next_ in range(LANES, width, LANES):
                verdict = min(verdict, above(lanes, e * width + next_, records, p * width + next_))
            slot = slot_of[p]
            out_slot[sure] = slot
            sure += verdict == 2
            doubt_event[doubtful] = e
            doubt_slot[doubtful] = slot
            doubtful += verdict == 1
        found = 0
    doubt_many[0] = doubtful
    return sure


@kernel
def pass_dense(
    family: Family,
    seen: Sight,
    several: NDArray[np.uint8],
    blocks: int,
    words: Words,
    width: int,
    counts: Int64s,
    doubts: Doubts,
) -> int:
    """The bitmap of each event, and pairs to be verified, which have no bit there.

    Event e has `words[e * width:]`; its bits are added to `counts[e]`. Gives 0, or -2 where there
    is no room for pairs.
    """
    bits, edges, slot_of = family.bits, family.edges, family.slot_of
    each = int(family.base[-1])
    columns = len(family.attribute)
    lines = seen.lines
    doubt_event, doubt_slot, _, doubt_many = doubts
    doubtful = doubt_many[0]
    edged = family.head[EDGED] > 0
    need = np.empty(WORDS, np.uint64)
    for tile in range(0, blocks, _TILE):
        last = min(tile + _TILE, blocks)
        for e in range(len(several)):
            if several[e]:
                words[e * width + WORDS * tile : e * width + WORDS * last] = 0
                continue
            doubt_many[LINES] += (last - tile) * columns
            for block in range(tile, last):
                base, edge_base = WORDS * block * each, WORDS * block * (each + 1)
                at = e * width + WORDS * block
                if e < each:
                    prefetch(bits, base + WORDS * (_TILE * each + e))
                some = and_lines(bits, base, lines, e * columns, columns, words, at)
                if some == 0:
                    continue
                total = 0
                if edged:
                    or_lines(edges, edge_base, lines, e * columns, columns, need, 0)
                    if doubtful + BLOCK > len(doubt_event):
                        return -2
                    for w in range(WORDS):
                        doubt = (need[w] | edges[edge_base + WORDS * each + w]) & words[at + w]
                        words[at + w] &= ~doubt
                        while doubt != 0:
                            doubt_event[doubtful] = e
                            place = BLOCK * block + 64 * w + trailing(doubt)
                            doubt_slot[doubtful] = slot_of[place]
                            doubtful += 1
                            doubt &= doubt - np.uint64(1)
                for w in range(WORDS):
                    total += popcount(words[at + w])
                counts[e] += total
    doubt_many[0] = doubtful
    return 0
