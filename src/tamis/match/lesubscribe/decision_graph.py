"""Decision graphs: a deterministic automaton in which one path finds all clauses that hold.

There is one level per attribute. A node stands for the clauses that are still possible. Its
attribute's values fall into segments; each segment has an edge to the node of the clauses that
remain possible, and one more edge stands for "missing". If a clause's last atom holds on an edge,
the edge lists the clause, and the nodes below no longer contain it. Nodes of the same level with
the same clauses are shared; without sharing, the graph is a tree. (Gough and Smith: Efficient
recognition of events in a distributed system, ACSC 1995, as described in Le Subscribe.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s, zeros
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import bisect_right
from tamis.match.lesubscribe.atoms import Atoms

UInt64s = NDArray[np.uint64]

END = -1  # the target of an edge after which no clause is possible
MEMBERS = 64
"""Average number of set members and list entries that building one node may produce."""


class DecisionGraph(NamedTuple):
    """Node i has the edges `first[i]:first[i] + size[i]`: one for "missing", then the segments.

    A segment extends from `begin[edge]` to the begin of the next segment. The edge finds the
    clauses `done[dones[edge]:dones[edge + 1]]`.
    """

    attribute: Int32s  # by node; node 0 is the root, unless the graph is empty
    first: Int64s
    size: Int32s
    begin: Int64s
    target: Int32s
    dones: Int64s
    done: Int32s


def empty() -> DecisionGraph:
    """A graph without nodes."""
    return zeros(DecisionGraph)._replace(dones=np.zeros(1, np.int64))


@kernel
def edge_of(graph: DecisionGraph, node: int, value: int) -> int:
    """The edge that a value follows."""
    first = graph.first[node] + 1
    return bisect_right(graph.begin, first, graph.first[node] + graph.size[node], value) - 1


class _Nodes(NamedTuple):
    """Nodes during the build. Node i stands for the ascending clauses
    `member[start[i]:start[i] + size[i]]`; the array `member` grows."""

    level: Int64s
    start: Int64s
    size: Int64s
    key: UInt64s  # hash: sum of random numbers, one per member and one for the level
    after: Int64s  # the next node of the same level
    head: Int64s  # by level: its first node
    memo: Int64s  # hash table of nodes by key; empty when nodes are not shared


class _Segments(NamedTuple):
    """How a node's clauses split: by "missing" first, then by segments of values.

    Clauses without an atom on this level are not included.
    """

    begin: Int64s
    goes: Int64s
    going: Int64s  # `going[goes[i]:goes[i + 1]]` cover segment i and have more atoms
    dones: Int64s
    done: Int64s  # `done[dones[i]:dones[i + 1]]` cover segment i and have no more atoms


@kernel
def build(
    atoms: Atoms, attributes: Int64s, most: int, share: bool, none: DecisionGraph
) -> tuple[bool, DecisionGraph]:
    """Build the graph of all clauses if it fits into `most` nodes; returns whether it fits.

    If it does not fit, the returned graph is `none`. `attributes[d]` is the attribute of level d.
    With `share`, equal nodes of a level are shared. The cost is dominated by writing down each
    edge's set of clauses to see whether its node exists: about one microsecond per edge for sets of
    fifty.
    """
    clauses = len(atoms.starts) - 1
    nodes = _no_nodes(most, len(attributes), share)
    member = np.arange(2 * clauses + 1024)
    cursor = atoms.starts[:-1].copy()  # each clause's first atom at or below the level
    first = np.zeros(most, np.int64)
    size = np.zeros(most, np.int64)
    begin = np.empty(1024, np.int64)
    target = np.empty(1024, np.int64)
    dones = np.zeros(1024, np.int64)
    done = np.empty(1024, np.int64)
    edges = 0
    many = 1 if clauses else 0
    top = clauses
    if clauses:
        _enter(nodes, 0, member, 0, clauses, -1, atoms, cursor)
    spare = most * MEMBERS  # remaining budget for set members and list entries
    for level in range(len(attributes)):
        node = nodes.head[level]
        while node >= 0:
            here = member[nodes.start[node] : nodes.start[node] + nodes.size[node]]
            free = _free(here, level, atoms, cursor)
            parts = _segments(here, level, atoms, cursor, spare)
            spare -= len(parts.going) + len(parts.done) + len(parts.begin)
            if spare < 0:
                return False, none
            first[node] = edges
            plain = END  # the node of just the free clauses, once made
            for part in range(len(parts.begin)):
                going = parts.going[parts.goes[part] : parts.goes[part + 1]]
                ready = parts.done[parts.dones[part] : parts.dones[part + 1]]
                child = plain
                if len(going) > 0 or (len(free) > 0 and (plain == END or not share)):
                    spare -= len(free) + len(going)
                    member = ensure_capacity(member, top, len(free) + len(going))
                    _merge(free, going, member[top:])
                    end = top + len(free) + len(going)
                    child = _enter(nodes, many, member, top, end, level, atoms, cursor)
                    if child == many:
                        many += 1
                        top = end
                    if many > most or spare < 0:
                        return False, none
                    if len(going) == 0:
                        plain = child
                last = done[dones[edges - 1] : dones[edges]] if edges else ready
                if part > 1 and child == target[edges - 1] and _equal(last, ready):
                    continue  # same as the previous segment: merge the two
                begin = ensure_capacity(begin, edges, 1)
                target = ensure_capacity(target, edges, 1)
                dones = ensure_capacity(dones, edges + 1, 1)
                done = ensure_capacity(done, dones[edges], len(ready))
                begin[edges] = parts.begin[part]
                target[edges] = child
                done[dones[edges] : dones[edges] + len(ready)] = ready
                dones[edges + 1] = dones[edges] + len(ready)
                edges += 1
            size[node] = edges - first[node]
            node = nodes.after[node]
    return True, DecisionGraph(
        attributes[nodes.level[:many]].astype(np.int32),
        first[:many].copy(),
        size[:many].astype(np.int32),
        begin[:edges].copy(),
        target[:edges].astype(np.int32),
        dones[: edges + 1].copy(),
        done[: dones[edges]].astype(np.int32),
    )


@kernel
def _no_nodes(most: int, levels: int, share: bool) -> _Nodes:
    table = 8 if share else 0
    while 0 < table < 2 * most:
        table *= 2
    return _Nodes(
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.uint64),
        np.empty(most + 1, np.int64),
        np.full(levels, -1, np.int64),
        np.full(table, -1, np.int64),
    )


@kernel
def _random(number: int) -> np.uint64:
    """A fixed pseudo-random value for each number (splitmix64)."""
    x = np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _enter(
    nodes: _Nodes,
    fresh: int,
    member: Int64s,
    start: int,
    end: int,
    level: int,
    atoms: Atoms,
    cursor: Int64s,
) -> int:
    """The node for clauses that continue below `level`; creates node `fresh` if none exists.

    The node is on the first level where one of its clauses has an atom. Levels in between test
    nothing and are skipped.
    """
    below = len(nodes.head)
    key = np.uint64(0)
    for i in range(start, end):
        atom = cursor[member[i]]
        if atoms.level[atom] <= level:
            atom += 1
        below = min(below, atoms.level[atom])
        key += _random(member[i])
    key += _random(-2 - below)
    mask = len(nodes.memo) - 1
    place = np.int64(key & np.uint64(max(0, mask)))
    while mask >= 0 and nodes.memo[place] >= 0:
        known = nodes.memo[place]
        if nodes.key[known] == key and nodes.level[known] == below:
            other, size = nodes.start[known], nodes.size[known]
            if _equal(member[other : other + size], member[start:end]):
                return int(known)
        place = (place + 1) & mask
    if mask >= 0:
        nodes.memo[place] = fresh
    nodes.level[fresh], nodes.key[fresh] = below, key
    nodes.start[fresh], nodes.size[fresh] = start, end - start
    nodes.after[fresh] = nodes.head[below]
    nodes.head[below] = fresh
    return fresh


@kernel
def _equal(one: Int64s, other: Int64s) -> bool:
    if len(one) != len(other):
        return False
    i = 0
    while i < len(one) and one[i] == other[i]:
        i += 1
    return i == len(one)


@kernel
def _merge(one: Int64s, other: Int64s, into: Int64s) -> None:
    i = k = 0
    for at in range(len(one) + len(other)):
        if k == len(other) or (i < len(one) and one[i] < other[k]):
            into[at] = one[i]
            i += 1
        else:
            into[at] = other[k]
            k += 1


@kernel
def _free(here: Int64s, level: int, atoms: Atoms, cursor: Int64s) -> Int64s:
    """The clauses of a node without an atom on its level; advances all cursors to the level."""
    free = np.empty(len(here), np.int64)
    n = 0
    for clause in here:
        while atoms.level[cursor[clause]] < level:
            cursor[clause] += 1
        free[n] = clause
        n += atoms.level[cursor[clause]] > level
    return free[:n]


@kernel
def _segments(here: Int64s, level: int, atoms: Atoms, cursor: Int64s, most: int) -> _Segments:
    """Sweep over the ends of the atoms on the level; stops when the lists exceed `most`."""
    ends = 0
    for clause in here:
        atom = cursor[clause]
        if atoms.level[atom] == level and not atoms.missing[atom]:
            ends += 2 * (atoms.rows[atom + 1] - atoms.rows[atom])
    point = np.empty(ends, np.int64)
    mover = np.empty(ends, np.int64)  # the clause that enters at the point, or ~clause if it leaves
    active = np.empty((2, len(here)), np.int64)  # going, done; ascending
    used = np.zeros(2, np.int64)
    n = 0
    for clause in here:
        atom = cursor[clause]
        if atoms.level[atom] != level:
            continue
        if atoms.missing[atom]:
            is_done = 1 if atom + 1 == atoms.starts[clause + 1] else 0
            active[is_done, used[is_done]] = clause
            used[is_done] += 1
        for row in range(atoms.rows[atom], atoms.rows[atom + 1]):
            point[n], mover[n] = atoms.low[row], clause
            n += 1
            if atoms.high[row] != HIGHEST:
                point[n], mover[n] = atoms.high[row] + 1, ~clause
                n += 1
    order = np.argsort(point[:n])
    begin = np.empty(n + 2, np.int64)
    goes = np.zeros(n + 3, np.int64)
    dones = np.zeros(n + 3, np.int64)
    going = np.empty(64, np.int64)
    done = np.empty(64, np.int64)
    parts = i = 0
    at = LOWEST
    while True:
        going = ensure_capacity(going, goes[parts], used[0])
        done = ensure_capacity(done, dones[parts], used[1])
        begin[parts] = at
        going[goes[parts] : goes[parts] + used[0]] = active[0, : used[0]]
        done[dones[parts] : dones[parts] + used[1]] = active[1, : used[1]]
        goes[parts + 1] = goes[parts] + used[0]
        dones[parts + 1] = dones[parts] + used[1]
        parts += 1
        if parts == 1:  # the first part was "missing"
            used[:] = 0
        elif i == n or goes[parts] + dones[parts] > most:
            break
        else:
            at = point[order[i]]
        same = i
        while same < n and point[order[same]] == at:
            same += 1
        for entering in (False, True):  # leave first: a clause that does both at a point stays in
            for k in range(i, same):
                clause = mover[order[k]]
                if (clause >= 0) == entering:
                    clause = clause if entering else ~clause
                    is_done = 1 if cursor[clause] + 1 == atoms.starts[clause + 1] else 0
                    used[is_done] = _turn(active[is_done], used[is_done], clause, entering)
        i = same
    return _Segments(
        begin[:parts],
        goes[: parts + 1],
        going[: goes[parts]],
        dones[: parts + 1],
        done[: dones[parts]],
    )


@kernel
def _turn(ascending: Int64s, used: int, clause: int, entering: bool) -> int:
    """Insert a clause into an ascending list or remove it; returns the new length."""
    place = used
    if entering:
        while place > 0 and ascending[place - 1] > clause:
            ascending[place] = ascending[place - 1]
            place -= 1
        ascending[place] = clause
        return used + 1
    place = bisect_right(ascending, 0, used, clause)
    for k in range(place, used):
        ascending[k - 1] = ascending[k]
    return used - 1
