"""The kernels of `kernels.cu` in NumPy, for machines without a GPU: tests, and reading."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import Pairs
from tamis.files.arrays import Bools, Int64s, UInt16s, offsets, runs
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.match.gpu.columns import ranks
from tamis.match.gpu.device import Device, FoundSlots
from tamis.match.gpu.gpu_index import GpuIndex
from tamis.match.gpu.layout import (
    BY_ROWS,
    DEAD,
    LAST_RANK,
    NOT_BOUND,
    OPEN_HIGH,
    OPEN_LOW,
    PLAIN,
    SEVERAL,
    WORDS,
)

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_WORDS_AT_ONCE = 1 << 22  # of lines: what the temporaries of a step take
_BITS_AT_ONCE = 1 << 25


class SimulatedDevice(Device):
    """The same arrays and answers as on a GPU, with the memory of a GPU of this size."""

    xp = np
    shared_bytes = 227 * 1024

    def bound_clauses(self, index: GpuIndex, slots: Any) -> None:
        plan = index.plan
        index.bounds[slots] = NOT_BOUND | OPEN_HIGH << 16
        index.state[slots] = np.where(index.count[slots] < 0, DEAD, PLAIN)
        live = slots[index.count[slots] >= 0]
        starts, at = runs(index.start[live], index.count[live])
        attribute, _, kind, low, high = (column[at] for column in index.rows)
        slot = np.repeat(live, np.diff(starts))
        again = np.zeros(len(at), np.bool_)  # a second interval, or a second term
        again[1:] = (slot[1:] == slot[:-1]) & (attribute[1:] == attribute[:-1])
        known = attribute < len(plan.column_of)
        column = np.where(known, plan.column_of[np.where(known, attribute, 0)], -1)
        empty = (kind == SOME) & (low > high)
        index.state[slot[again | empty | (kind == NONE) | (column < 0)]] = BY_ROWS
        for which in range(plan.width):
            mine = np.flatnonzero(column == which)
            edges = plan.edges[plan.edge_starts[which] : plan.edge_starts[which + 1]]
            lowest = np.where(low[mine] == _LOWEST, OPEN_LOW, ranks(edges, low[mine]))
            highest = np.where(high[mine] == _HIGHEST, OPEN_HIGH, ranks(edges, high[mine]))
            lowest[kind[mine] == NONE], highest[kind[mine] == NONE] = OPEN_LOW, OPEN_HIGH
            lowest[kind[mine] == MISSING] = highest[kind[mine] == MISSING] = NOT_BOUND
            if not len(mine):
                continue
            firsts = np.flatnonzero(~again[mine])  # the hull of all rows on the attribute
            lowest = np.minimum.reduceat(lowest, firsts)
            highest = np.maximum.reduceat(highest, firsts)
            index.bounds[slot[mine[firsts]], which] = lowest | highest << 16

    def write_lines(self, index: GpuIndex, words: Any) -> None:
        plan = index.plan
        step = max(1, _BITS_AT_ONCE // (plan.all_lines * 32))
        for first in range(0, len(words), step):
            part = words[first : first + step]
            slots = part[:, None] * 32 + np.arange(32)
            live = index.state[slots] != DEAD
            lines = np.zeros((len(part), plan.all_lines), np.uint32)
            lines[:, -1] = _packed(index.state[slots] == BY_ROWS)
            cells = np.arange(plan.lines - 1)[:, None]
            for column in range(plan.width):
                bounds = index.bounds[slots, column]
                low, high = bounds & 0xFFFF, bounds >> 16
                edges = plan.cell_edges[column]
                begin = np.searchsorted(edges, np.maximum(low, OPEN_LOW), "right")[:, None]
                end = np.searchsorted(edges, np.minimum(high, LAST_RANK), "right")[:, None]
                bound = (live & (high >= OPEN_LOW))[:, None]
                own = lines[:, column * plan.lines : (column + 1) * plan.lines]
                own[:, :-1] = _packed(bound & (begin <= cells) & (cells <= end))
                own[:, -1] = _packed(live & (low == NOT_BOUND))
            index.lines[part // WORDS, :, part % WORDS] = lines

    def find(self, index: GpuIndex, events: Pairs) -> FoundSlots:
        places, values, value_places = self._placed(index, events)
        event, slot = _candidates(index, events, places, value_places)
        several = (places == SEVERAL).any(axis=1)[event]
        bounds = index.bounds[slot]
        low, high, value = bounds & 0xFFFF, bounds >> 16, values[event]
        inside = several | ((low <= value) & (value <= high)).all(axis=1)
        # A gap between edges may hold the end of the interval and the value.
        unsure = ((value & 1 == 0) & ((value == low) | (value == high))).any(axis=1)
        unsure |= several | (index.state[slot] == BY_ROWS)
        check = np.flatnonzero(inside & unsure)
        inside[check] = rows_hold(index, events, event[check], slot[check])
        starts = offsets(np.bincount(event[inside], minlength=len(places)))
        return FoundSlots(starts, slot[inside].astype(np.int32), starts)

    def _placed(self, index: GpuIndex, events: Pairs) -> tuple[UInt16s, UInt16s, UInt16s]:
        """The line of each event and column, its rank, and the line of each value."""
        plan, many = index.plan, len(events.starts) - 1
        columns = np.arange(plan.width)
        places = np.tile(columns * plan.lines + plan.lines - 1, (many, 1)).astype(np.uint16)
        values = np.full((many, plan.width), NOT_BOUND, np.uint16)
        value_places = np.zeros(len(events.code), np.uint16)
        event = np.repeat(np.arange(many), np.diff(events.starts))
        for column, attribute in enumerate(plan.attributes):
            mine = np.flatnonzero(events.attribute == attribute)
            edges = plan.edges[plan.edge_starts[column] : plan.edge_starts[column + 1]]
            rank = ranks(edges, events.code[mine])
            cell = np.searchsorted(plan.cell_edges[column], rank, "right")
            values[event[mine], column] = rank
            value_places[mine] = places[event[mine], column] = column * plan.lines + cell
            several = np.bincount(event[mine], minlength=many) > 1
            places[several, column] = SEVERAL
        return places, values, value_places


def _packed(bits: Bools) -> NDArray[np.uint32]:
    """The bits of the last axis, 32 of them, as words."""
    packed: NDArray[np.uint32] = np.packbits(bits, axis=-1, bitorder="little").view("<u4")[..., 0]
    return packed


def _candidates(
    index: GpuIndex, events: Pairs, places: UInt16s, value_places: UInt16s
) -> tuple[Int64s, Int64s]:
    """The pairs of events and slots whose bits are set in all lines, by event."""
    lines = index.lines[: index.tiles]
    found_events, found_slots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    several = (places == SEVERAL).any(axis=1)
    step = max(1, _WORDS_AT_ONCE // max(1, index.tiles * index.plan.width * WORDS))
    first = 0
    while first < len(places):
        if several[first]:
            last = first + 1
            bits = _of_several(index, events, first, places[first], value_places)[:, None]
        else:
            stop = first + step
            after = np.flatnonzero(several[first:stop])
            last = first + int(after[0]) if len(after) else min(stop, len(places))
            bits = np.bitwise_and.reduce(lines[:, places[first:last]], axis=2)
        by_event = np.ascontiguousarray(bits.swapaxes(0, 1)).reshape(last - first, -1)
        row, word = np.nonzero(by_event)
        single = np.unpackbits(by_event[row, word, None].view(np.uint8), axis=1, bitorder="little")
        which, bit = np.nonzero(single)
        found_events.append(row[which] + first)
        found_slots.append(word[which] * 32 + bit)
        first = last
    return np.concatenate(found_events), np.concatenate(found_slots)


def _of_several(
    index: GpuIndex, events: Pairs, event: int, places: UInt16s, value_places: UInt16s
) -> Any:
    """The bits of an event that has several values of some attribute, tile by tile."""
    run = slice(events.starts[event], events.starts[event + 1])
    lines = index.lines[: index.tiles]
    bits = np.full((index.tiles, WORDS), 0xFFFFFFFF, np.uint32)
    for column, place in enumerate(places.tolist()):
        if place == SEVERAL:
            mine = value_places[run][events.attribute[run] == index.plan.attributes[column]]
            bits &= np.bitwise_or.reduce(lines[:, mine], axis=1)
        else:
            bits &= lines[:, place]
    return bits


def rows_hold(index: GpuIndex, events: Pairs, event: Int64s, slot: Int64s) -> Bools:
    """Whether the clause of each slot holds for each event, from its rows."""
    starts, at = runs(index.start[slot], index.count[slot])
    pair = np.repeat(np.arange(len(slot)), np.diff(starts))
    attribute, term, kind, low, high = (column[at] for column in index.rows)
    # The values of the attribute: a run among the pairs of the event.
    width = 1 + max(int(attribute.max(initial=0)), int(events.attribute.max(initial=0)))
    of = np.repeat(np.arange(len(events.starts) - 1), np.diff(events.starts))
    keys = of * width + events.attribute
    wanted = event[pair] * width + attribute
    first, last = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, "right")
    inside = np.zeros(len(at), np.bool_)
    for nth in range(int((last - first).max(initial=0))):
        there = np.flatnonzero(first + nth < last)
        code = events.code[first[there] + nth]
        inside[there] |= (low[there] <= code) & (code <= high[there])
    holds = np.ones(len(slot), np.bool_)
    if not len(at):
        return holds
    new = np.ones(len(at), np.bool_)
    new[1:] = (pair[1:] != pair[:-1]) | (term[1:] != term[:-1])
    heads = np.flatnonzero(new)
    any_inside = np.logical_or.reduceat(inside, heads)
    bound, kind = (first < last)[heads], kind[heads]
    ok = np.where(kind == SOME, any_inside, np.where(kind == NONE, bound & ~any_inside, ~bound))
    holds[pair[heads[~ok]]] = False
    return holds
