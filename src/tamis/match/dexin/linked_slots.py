"""Exclusive matching of DEXIN over slots that are linked lists."""

from __future__ import annotations

from tamis.files.arrays import Int64s
from tamis.index.kernel import kernel
from tamis.match.dexin.bitset import Words
from tamis.match.dexin.interval_ends import HIGH, LOW, NO_LOW, NOT, Ends, cell_of, list_of
from tamis.match.dexin.linked_ends import ABOVE, BELOW, EQUAL, strike_chains, strike_compared


@kernel
def count_equal_linked(ends: Ends, a: int, v: int) -> int:
    """The number of clauses that exclude exactly this value."""
    node = ends.lists.start[list_of(ends, a, NOT, cell_of(ends, a, v))]
    many = 0
    while node >= 0:
        many += ends.keys[node] == v
        node = ends.links[node]
    return many


@kernel
def strike_equal_linked(ends: Ends, a: int, v: int, partial: Words, work: Int64s) -> None:
    """Remove the clauses that exclude exactly this value."""
    at = list_of(ends, a, NOT, cell_of(ends, a, v))
    work[0] += ends.lists.size[at]
    work[1] += 1
    work[2] += strike_compared(
        ends.lists, ends.links, (ends.keys, ends.slots), at, v, EQUAL, partial
    )


@kernel
def exclude_linked(ends: Ends, a: int, values: Int64s, partial: Words, work: Int64s) -> None:
    """Exclude the clauses whose ends on attribute a all values of the event violate."""
    lists, links, slots = ends.lists, ends.links, ends.slots
    if len(values) == 0:
        work[1] += ends.cells[a] + 1
        work[2] += _strike_all(ends, a, partial)
        return
    least, greatest = values.min(), values.max()
    lows, highs = list_of(ends, a, LOW, 0), list_of(ends, a, HIGH, 0)
    top, bottom = lows + cell_of(ends, a, greatest), highs + cell_of(ends, a, least)
    compared = (ends.keys, slots)
    struck = strike_compared(lists, links, compared, top, greatest, ABOVE, partial)
    struck += strike_compared(lists, links, compared, bottom, least, BELOW, partial)
    struck += strike_chains(lists, links, slots, top + 1, highs, partial)
    struck += strike_chains(lists, links, slots, highs, bottom, partial)
    work[0] += lists.size[top] + lists.size[bottom]
    work[1] += bottom - top + 1
    work[2] += struck


@kernel
def strike_unbound_linked(
    ends: Ends, first: Int64s, last: Int64s, except_: Int64s, words: Words
) -> tuple[int, int]:
    """Remove all clauses that require an unbound attribute; returns lists and entries read.

    Attributes with a value of 0 or more in `except_` are skipped.
    """
    lists = struck = 0
    for a in ends.used:
        if first[a] == last[a] and except_[a] < 0:
            struck += _strike_all(ends, a, words)
            lists += ends.cells[a] + 1
    return lists, struck


@kernel
def _strike_all(ends: Ends, a: int, words: Words) -> int:
    """Remove all clauses that require attribute a; returns the number of entries."""
    lows, no_low = list_of(ends, a, LOW, 0), list_of(ends, a, NO_LOW, 0)
    struck = strike_chains(ends.lists, ends.links, ends.slots, lows, lows + ends.cells[a], words)
    return struck + strike_chains(ends.lists, ends.links, ends.slots, no_low, no_low + 1, words)
