"""Linked lists of ends, in no order: DEXIN's alternative to sorted slots.

A new end becomes the head of its list, whatever the list holds. In return, the slot of a value is
compared end by end, and reading a list follows its links.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.match.dexin.bitset import Words

ABOVE, BELOW, EQUAL = 0, 1, 2
_NONE = -1  # the end of a chain


class LinkedLists(HoldsArrays):
    """Lists of (key, value) as chains of nodes. add O(1), remove O(length of the list)."""

    def clear(self) -> None:
        self._head = np.zeros(0, np.int64)
        self._size = np.zeros(0, np.int64)
        self._keys = np.zeros(0, np.int64)
        self._values = np.zeros(0, np.int32)
        self.links = np.zeros(0, np.int32)  # by node: the next node of its list
        self._ends = np.array([0, _NONE], np.int64)  # the first unused node, the first freed one
        self.total = 0

    @property
    def lists(self) -> Lists:
        """The first node and the size of each list, for kernels."""
        return Lists(self._head, self._size)

    @property
    def pools(self) -> tuple[NDArray[Any], ...]:
        """Keys and values by node."""
        return self._keys, self._values

    def number(self, lists: int) -> None:
        """Make sure that there are at least this many lists."""
        self._head = grown(self._head, lists, _NONE)
        self._size = grown(self._size, lists)

    def add(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Put (key i, value i) into list `lists[i]`."""
        self.number(int(lists.max(initial=-1)) + 1)
        size = int(self._ends[0]) + len(lists)
        self._keys, self._values = grown(self._keys, size), grown(self._values, size)
        self.links = grown(self.links, size)
        if self.total == 0 and len(lists):  # the nodes of a list then lie one after another
            order = np.argsort(-lists, kind="stable")
            lists, keys, values = lists[order], keys[order], values[order]
        _link(self.lists, self._keys, self._values, self.links, self._ends, lists, keys, values)
        self.total += len(lists)

    def remove(self, lists: Int64s, keys: Int64s, values: NDArray[Any]) -> None:
        """Remove (key i, value i) from list `lists[i]`."""
        missing = _unlink(
            self.lists, self._keys, self._values, self.links, self._ends, lists, keys, values
        )
        assert missing < 0, f"key {keys[missing]} is not in list {lists[missing]}"
        self.total -= len(lists)

    def flat(self) -> tuple[NDArray[Any], ...]:
        """The list of each item, and the items, in the order of the lists."""
        nodes = _nodes(self.lists, self.links, self.total)
        lists = np.repeat(np.arange(len(self._size)), self._size)
        return lists, self._keys[nodes], self._values[nodes]

    def check(self) -> None:
        """Raise if a chain is broken, or nodes are lost."""
        assert int(self._size.sum()) == self.total
        nodes = _nodes(self.lists, self.links, self.total)
        assert (nodes >= 0).all(), "chains are as long as their sizes say"
        assert len(np.unique(nodes)) == self.total, "a node is in one chain"
        assert self.total <= self._ends[0] <= len(self.links)


@kernel
def _link(
    to: Lists,
    keys: Int64s,
    values: Int32s,
    links: Int32s,
    ends: Int64s,
    lists: Int64s,
    fresh: Int64s,
    fresh_values: NDArray[Any],
) -> None:
    for i in range(len(lists)):
        node = ends[1]
        if node >= 0:
            ends[1] = links[node]
        else:
            node = ends[0]
            ends[0] += 1
        keys[node], values[node] = fresh[i], fresh_values[i]
        links[node] = to.start[lists[i]]
        to.start[lists[i]] = node
        to.size[lists[i]] += 1


@kernel
def _unlink(
    of: Lists,
    keys: Int64s,
    values: Int32s,
    links: Int32s,
    ends: Int64s,
    lists: Int64s,
    gone: Int64s,
    gone_values: NDArray[Any],
) -> int:
    """Free the nodes of some items. Returns the position of a missing one, or -1."""
    for i in range(len(lists)):
        before = _NONE
        node = of.start[lists[i]]
        while node >= 0 and (values[node] != gone_values[i] or keys[node] != gone[i]):
            before = node
            node = links[node]
        if node < 0:
            return i
        if before >= 0:
            links[before] = links[node]
        else:
            of.start[lists[i]] = links[node]
        of.size[lists[i]] -= 1
        links[node] = ends[1]
        ends[1] = node
    return -1


@kernel
def _nodes(lists: Lists, links: Int32s, total: int) -> Int64s:
    """The nodes of all lists, in order; -1 where a chain is shorter than its size."""
    nodes = np.full(total, _NONE, np.int64)
    n = 0
    for at in range(len(lists.size)):
        node = lists.start[at]
        for _ in range(lists.size[at]):
            nodes[n] = node
            n += 1
            node = links[node] if node >= 0 else _NONE
    return nodes


@kernel
def strike_chains(
    lists: Lists, links: Int32s, slots: Int32s, begin: int, end: int, words: Words
) -> int:
    """Clear the bits of all slots in the lists `begin:end`; returns the number of entries."""
    struck = 0
    for at in range(begin, end):
        node = lists.start[at]
        while node >= 0:
            slot = np.uint32(slots[node])
            words[slot >> np.uint32(5)] &= ~(np.uint32(1) << (slot & np.uint32(31)))
            node = links[node]
        struck += lists.size[at]
    return struck


@kernel
def strike_compared(
    lists: Lists,
    links: Int32s,
    ends: tuple[Int64s, Int32s],
    at: int,
    value: int,
    how: int,
    words: Words,
) -> int:
    """Clear the bits of the slots in one list whose keys are above, below or equal to a value.

    Returns their number.
    """
    keys, slots = ends
    struck = 0
    node = lists.start[at]
    while node >= 0:
        key = keys[node]
        out = key > value if how == ABOVE else key < value if how == BELOW else key == value
        if out:
            slot = np.uint32(slots[node])
            words[slot >> np.uint32(5)] &= ~(np.uint32(1) << (slot & np.uint32(31)))
            struck += 1
        node = links[node]
    return struck
