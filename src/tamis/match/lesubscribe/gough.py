"""The gough algorithm: one path through a decision graph finds all matching subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError, counted
from tamis.files.arrays import Bools, Int64s
from tamis.index.clauses import SOME, ClauseArrays, bind, holds, unbind
from tamis.index.counters import Counters
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.lesubscribe.atoms import Atoms, atoms_of
from tamis.match.lesubscribe.decision_graph import (
    END,
    MEMBERS,
    DecisionGraph,
    build,
    edge_of,
    empty,
)
from tamis.match.options import Option, choice, flag, whole_number

_ORDERS = ("selective", "popular", "schema")
_START = 64  # number of clauses in the first graph tried
_STEPS = 2  # bisection steps between the last size that fitted and the first that did not
_REBUILD = 8  # this few changes never trigger a rebuild, however small the graph


class GraphSlots(NamedTuple):
    """The kernel's input in addition to the graph."""

    slot: Int64s  # by clause of the graph: its slot, or -1 if it was removed
    levels: Int64s  # the attributes of the graph
    side: Int64s  # slots outside the graph
    seen: Int64s  # by clause of the graph: stamp of the last event that found it


class Gough(Matcher):
    """Compile the subscriptions into a graph in which an event follows a single path.

    There is one level per attribute. The values that subscriptions mention cut the domain into
    segments; a node has one edge per segment and one for "missing". A node stands for the
    subscriptions that are still possible, and an edge lists those found there. Nodes for the same
    subscriptions are shared (`memo=False` makes the graph a tree).

    The size of the graph is combinatorial and limits how many subscriptions it can hold. It is
    built for as many as fit into `max_nodes` nodes. Subscriptions with an equality on the topmost
    attributes go first, because they keep the nodes apart. All others are verified for every event,
    as in `naive`. With `overflow="error"` all must fit: otherwise `match` raises until enough
    subscriptions are removed; no subscription is lost. `order` sets the order of the attributes: by
    distinct values in equalities (`"selective"`), by the number of subscriptions that mention them
    (`"popular"`), by number (`"schema"`), or as a list of numbers, followed by the other
    attributes.

    add, remove O(1): new subscriptions are verified one by one and removed ones are skipped. Once
    the changes exceed half of the subscriptions at the last build, the next match rebuilds the
    graph. match O(attributes · log subscriptions + matches) for the subscriptions in the graph.

    Le Subscribe, figure 3, after Gough and Smith, ACSC 1995; the construction is ours. The paper
    rebuilds the graph at each change and stores complete results in leaves. We list a subscription
    on the edge of its last predicate, which leaves far fewer distinct sets. An event with several
    values of an attribute follows a path for each, and the subscriptions it finds are verified.
    It is slower than `scan` when most subscriptions do not fit, because the rest run as in `naive`.
    """

    max_nodes = whole_number(100_000, "nodes of the graph", least=1, most=10_000_000)
    overflow = choice("scan", "what becomes of subscriptions that do not fit", "scan", "error")
    order: Option[str | Sequence[int]] = Option(
        "selective",
        "order of the attributes from the top of the graph",
        values=f"one of {', '.join(_ORDERS)}, or a list of distinct numbers of attributes",
        valid=lambda order: order in _ORDERS if isinstance(order, str) else _numbers(order),
        read=lambda text: text if text in _ORDERS else [int(a) for a in text.split(",")],
    )
    memo = flag(True, "share nodes that stand for the same subscriptions")

    def clear(self) -> None:
        self._graph = empty()
        self._levels = np.zeros(0, np.int64)  # attributes of the graph
        self._slot = np.zeros(0, np.int64)  # by clause of the graph
        self._clause = np.zeros(0, np.int64)  # by slot: its clause in the graph, or -1
        self._side = SlotSet()  # all slots outside the graph
        self._counters = Counters()
        self._at_build = 0  # clauses when the graph was made
        self._changes = 0  # clauses added or removed since
        self._refusal = ""  # why the graph did not fit; reset when a clause is removed

    @property
    def nodes(self) -> int:
        """The number of nodes in the graph."""
        return len(self._graph.first)

    @property
    def held(self) -> int:
        """The number of clauses for which the graph was built."""
        return len(self._slot)

    def find(self, batch: EventBatch) -> Matches:
        if self._refusal:
            raise MatcherError(self._refusal)
        if self._changes > (max(_REBUILD, self._at_build // 2) if self._at_build else 0):
            self._renew()
        seen = self._counters.fit(0, len(self._slot)).seen
        return self.run(
            _match,
            batch,
            self._graph,
            GraphSlots(self._slot, self._levels, self._side.slots, seen),
            self._counters.stamps(len(batch)),
        )

    def check(self) -> None:
        super().check()
        self._side.check()
        live = self.clauses.live_slots()
        kept = np.flatnonzero(self._slot >= 0)
        assert (self._clause[self._slot[kept]] == kept).all()
        assert (np.flatnonzero(self._clause >= 0) == np.sort(self._slot[kept])).all()
        both = np.concatenate([self._slot[kept], self._side.slots])
        assert (np.sort(both) == live).all(), "a clause is in the graph or beside it"
        graph = self._graph
        assert int(graph.size.sum()) == len(graph.begin) == len(graph.target)
        rank = np.zeros(int(self._levels.max(initial=-1)) + 1, np.int64)
        rank[self._levels] = np.arange(len(self._levels))
        level = rank[graph.attribute]
        node = np.repeat(np.argsort(graph.first), graph.size[np.argsort(graph.first)])
        onward = graph.target != END
        assert (level[graph.target[onward]] > level[node[onward]]).all(), "edges lead downwards"
        inner = np.ones(len(graph.begin), np.bool_)
        inner[graph.first] = False
        inner[graph.first + 1] = False
        assert (graph.begin[1:] > graph.begin[:-1])[inner[1:]].all(), "segments ascend"
        if self.nodes:
            turns = np.random.default_rng(0).integers(2**31, size=512)
            wrong = _wrong_paths(graph, self.clauses.view, self.clauses.width, self._slot, turns)
            assert wrong < 0, f"a path misses or wrongly finds slot {self._slot[wrong]}"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._clause = grown(self._clause, self.clauses.slots, -1)
        self._side.add(slots)
        self._changes += len(slots)

    def drop_clauses(self, slots: Slots) -> None:
        clause = self._clause[slots]
        inside = clause >= 0
        self._slot[clause[inside]] = -1
        self._clause[slots[inside]] = -1
        self._side.remove(slots[~inside])
        self._changes += len(slots)
        self._refusal = ""

    def _renew(self) -> None:
        """Build the graph for as many clauses as fit."""
        live = self.clauses.live_slots()
        terms = self.terms(live)
        fit = _fits(self.clauses.view, live)
        levels = self._ordered(terms)
        level_of = np.zeros(self.clauses.width, np.int64)
        level_of[levels] = np.arange(len(levels))
        clause = np.repeat(np.arange(len(live)), np.diff(terms.starts))
        equal = (terms.low == terms.high) & (terms.kind == SOME)
        pinned = np.full(len(live), len(levels))  # the first level with an equality
        np.minimum.at(pinned, clause[equal], level_of[terms.attribute[equal]])
        slots = live[fit][np.argsort(pinned[fit], kind="stable")]
        atoms = atoms_of(self.clauses.view, slots, level_of)
        if self.overflow == "error":
            held, graph = self._whole(atoms, levels, len(live))
        else:
            held, graph = self._largest(atoms, levels)
        self._graph, self._levels, self._slot = graph, levels, slots[:held].copy()
        self._clause = np.full(len(self._clause), -1)
        self._clause[self._slot] = np.arange(held)
        self._side.clear()
        self._side.add(live[self._clause[live] < 0])
        self._counters.clear()
        self._at_build, self._changes = len(live), 0

    def _whole(self, atoms: Atoms, levels: Int64s, live: int) -> tuple[int, DecisionGraph]:
        held = len(atoms.starts) - 1
        fits, graph = build(atoms, levels, self.max_nodes, self.memo, empty())
        if not fits:
            self._refusal = (
                f"the graph of {counted(live, 'clause')} does not fit into {self.max_nodes} nodes "
                f"of {MEMBERS} members; allow more nodes (max_nodes), try another order of "
                "attributes (order), or verify the clauses that do not fit one by one "
                "(overflow='scan')"
            )
            raise MatcherError(self._refusal)
        return held, graph

    def _largest(self, atoms: Atoms, levels: Int64s) -> tuple[int, DecisionGraph]:
        """A graph of the first clauses, for about as many as fit."""
        least, most = 0, len(atoms.starts)  # known to fit; too many
        best = empty()
        tried, halvings = min(_START, most - 1), 0
        while least < tried < most and halvings <= _STEPS:
            fits, graph = build(_first(atoms, tried), levels, self.max_nodes, self.memo, empty())
            if fits:
                least, best = tried, graph
            else:
                most = tried
            if most <= len(atoms.starts) - 1:
                halvings += 1
                tried = (least + most) // 2
            else:
                tried = min(2 * tried, most - 1)
        return least, best

    def _ordered(self, terms: Terms) -> Int64s:
        """The attributes that clauses mention, in the order of the levels."""
        used, inverse = np.unique(terms.attribute.astype(np.int64), return_inverse=True)
        popular = np.bincount(inverse, minlength=len(used))
        equal = (terms.low == terms.high) & (terms.kind == SOME)
        values = np.unique(np.stack([inverse[equal], terms.low[equal]]), axis=1)[0]
        selective = np.bincount(values, minlength=len(used))
        if self.order == "schema":
            return used
        if self.order == "popular":
            return used[np.argsort(-popular, kind="stable")]
        rest = used[np.lexsort((-popular, -selective))]
        if isinstance(self.order, str):
            return rest
        named = np.array(self.order, np.int64)
        return np.concatenate([named[np.isin(named, used)], rest[~np.isin(rest, named)]])


def _numbers(order: Any) -> bool:
    """Whether `order` is a list of distinct attribute numbers."""
    listed = list(order) if isinstance(order, Sequence) else [-1]
    return len(set(listed)) == len(listed) and all(type(a) is int and a >= 0 for a in listed)


def _first(atoms: Atoms, clauses: int) -> Atoms:
    return atoms._replace(starts=atoms.starts[: clauses + 1])


@kernel
def _fits(clauses: ClauseArrays, slots: Int64s) -> Bools:
    """Which clauses a path can represent: those with terms, at most one per attribute."""
    fit = np.empty(len(slots), np.bool_)
    for i in range(len(slots)):
        start = clauses.start[slots[i]]
        end = start + clauses.size[slots[i]]
        fit[i] = start < end
        for row in range(start + 1, end):
            if clauses.attribute[row] == clauses.attribute[row - 1]:
                fit[i] &= clauses.term[row] == clauses.term[row - 1]
    return fit


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    graph: DecisionGraph,
    found: GraphSlots,
    stamp: int,
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: predicates tested, nodes visited, clauses found or verified
    starts, out, work, first, last = answer_arrays(events.starts, width)
    many = 0
    stack = np.empty(1024, np.int64)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        listed = found.slot[:0]
        if several and _paths(found.levels, first, last, len(found.slot)) > len(found.slot):
            listed = found.slot  # verifying all clauses is cheaper than following all paths
        elif len(graph.first):
            stack[0] = 0
            depth = 1
            while depth > 0:
                depth -= 1
                node = stack[depth]
                a = graph.attribute[node]
                work[0] += 1
                work[1] += 1
                stack = ensure_capacity(stack, depth, max(1, last[a] - first[a]))
                for at in range(first[a], max(last[a], first[a] + 1)):
                    # A single-valued event takes one edge per level; the bisection is its cost.
                    if at < last[a]:
                        edge = edge_of(graph, node, events.code[at])
                    else:
                        edge = graph.first[node]
                    out = ensure_capacity(out, many, graph.dones[edge + 1] - graph.dones[edge])
                    for place in range(graph.dones[edge], graph.dones[edge + 1]):
                        clause = graph.done[place]
                        slot = found.slot[clause]
                        ok = slot >= 0
                        work[2] += 1
                        if several and ok:
                            ok = found.seen[clause] != stamp + event
                            if ok:
                                found.seen[clause] = stamp + event
                                ok, _ = holds(clauses, slot, first, last, events.code)
                        if ok:
                            out[many] = slot
                            many += 1
                    if graph.target[edge] != END:
                        stack[depth] = graph.target[edge]
                        depth += 1
        for slots in (listed, found.side):
            out = ensure_capacity(out, many, len(slots))
            for slot in slots:
                if slot < 0:
                    continue
                ok, looked = holds(clauses, slot, first, last, events.code)
                work[0] += looked
                work[2] += 1
                if ok:
                    out[many] = slot
                    many += 1
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = many
    return starts, out[:many], work


@kernel
def _paths(levels: Int64s, first: Int64s, last: Int64s, enough: int) -> int:
    """The number of paths of an event with several values; stops at any number above `enough`."""
    paths = 1
    for a in levels:
        if a < len(first):
            paths *= max(1, last[a] - first[a])
            if paths > enough:
                break
    return paths


@kernel
def _wrong_paths(
    graph: DecisionGraph, clauses: ClauseArrays, width: int, slot: Int64s, turns: Int64s
) -> int:
    """Walk random paths; returns a clause that holds but is not found, or vice versa, else -1."""
    first = np.zeros(width, np.int64)
    last = np.zeros(width, np.int64)
    code = np.zeros(width, np.int64)
    turn = 0
    while turn < len(turns):
        first[:] = 0
        last[:] = 0
        found = np.zeros(len(slot), np.bool_)
        node = 0
        while node != END:
            edge = graph.first[node] + turns[turn % len(turns)] % graph.size[node]
            turn += 1
            a = graph.attribute[node]
            if edge > graph.first[node]:
                code[a] = graph.begin[edge]
                first[a], last[a] = a, a + 1
            for place in range(graph.dones[edge], graph.dones[edge + 1]):
                found[graph.done[place]] = True
            node = graph.target[edge]
        for clause in range(len(slot)):
            if slot[clause] >= 0:
                ok, _ = holds(clauses, slot[clause], first, last, code)
                if ok != found[clause]:
                    return clause
    return -1
