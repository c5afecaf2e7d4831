"""Match a batch of events against a family: each block is read once for all events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int16s, Int32s, Int64s, UInt8s, UInt16s
from tamis.index.bits import Words
from tamis.index.kernel import kernel
from tamis.match.default.passes.event_arrays import CHECKS, LINES, Doubts, Events
from tamis.match.default.passes.vector import (
    HAS_COMPRESS,
    LANES,
    PACKED,
    WORDS,
    above,
    and_lines,
    or_lines,
    popcount,
    positions,
    prefetch,
    repeat,
    trailing,
)
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import BLOCK, COLUMNS, EDGED, Family

_FEW = 4  # up to this many events are processed one by one
_AHEAD = 6  # blocks to prefetch
_SPAN = 64 * 1024  # blocks that one event takes at a time; their list must fit in `event`
_TILE = 8  # blocks whose results are written together
_WAITING = 1024  # candidates of one event that are collected before they are checked
ROUND = 256  # candidates are checked after this many events, so that they stay in cache
CANDIDATES = ROUND * (BLOCK + 1) + _WAITING + 64  # maximum candidates, and space to write past


class Sight(NamedTuple):
    """Events in the terms of one family: a bitmap line per column, and a record."""

    lines: UInt16s
    lanes: Int16s  # empty in a dense family


@kernel
def sight(cells: ValueCells, family: Family, events: Events, each: int, seen: Sight) -> None:
    """Compute the `Sight` of events. `each` is the result of `find_cells`."""
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
    if each > 0:  # all events have the same attributes: go attribute by attribute
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
def zones(family: Family, lines: UInt16s, several: UInt8s, group: int, mask: Words) -> None:
    """For each event, a mask of the 64 blocks in a group that may contain a match."""
    each = int(family.base[-1])
    columns = len(family.attribute)
    zone = family.zone[group * each : (group + 1) * each]
    for e in range(len(several)):
        left = ~np.uint64(0) if several[e] == 0 else np.uint64(0)
        for k in range(columns):
            left &= zone[lines[e * columns + k]]
        mask[e] = left


class CandidateBlocks(NamedTuple):
    """Scratch space for the results of `pass_sparse` in one block, kept between calls.

    Per event: `mask` has the blocks that may contain a match. `whom` lists the events that may
    match in the current block; those that do have a `line`, and `words` says which of its words are
    not 0. Per candidate: `event` and `place`.
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
    several: UInt8s,
    blocks: tuple[int, int],
    candidates: CandidateBlocks,
    out_event: Int32s,
    out_slot: Int32s,
    doubts: Doubts,
) -> int:
    """Matching pairs of event and slot from some blocks, and pairs to be verified.

    Skips events with several values of an attribute. Returns the number of pairs, or -1 if the
    output is too short, or -2 if `doubts` is.

    A block takes three steps: the AND for all events; the bits that are left; their records. Each
    step is a loop with few unpredictable branches. Records come from memory, so they are prefetched
    during the AND (22 µs without, 9 µs with, for 350,000 clauses), and so is the next block. A few
    events need only a small part of each block: see `_pass_alone`.
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
    found = ROUND  # in `event`, lines come before this index and candidates after it
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
                    if HAS_COMPRESS:
                        found = positions(word, first, place, found)
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
    several: UInt8s,
    blocks: tuple[int, int],
    candidates: CandidateBlocks,
    out_event: Int32s,
    out_slot: Int32s,
    doubts: Doubts,
) -> int:
    """`pass_sparse` for a few events, one by one."""
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
    """Match one event against some blocks. Its slots go to `out_slot[sure:]`.

    Every access is a cache miss here. So the blocks to read are listed first. The lines of later
    blocks are prefetched during the AND of the current one. Candidates are collected while their
    records are prefetched. (Prefetching the lines of all blocks, needed or not, doubles the number
    of lines: 60 µs instead of 45 for 350,000 clauses.)
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
    several: UInt8s,
    blocks: int,
    words: Words,
    width: int,
    counts: Int64s,
    doubts: Doubts,
) -> int:
    """The bitmap of each event, and pairs to be verified. The latter have no bit in the bitmap.

    The bitmap of event e is at `words[e * width:]`; the number of its bits is added to `counts[e]`.
    Returns 0, or -2 if `doubts` is full.
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
