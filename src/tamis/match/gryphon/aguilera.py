"""Gryphon's matching tree: follow the edges of the event's results and the star edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.counters import Counters
from tamis.index.elementary_predicates import has_several
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.gryphon.factored_tests import FactoredTests
from tamis.match.gryphon.factoring import Factored, roots_of
from tamis.match.gryphon.general_successors import general_successors, leap_general
from tamis.match.gryphon.level_tree import LevelTree
from tamis.match.gryphon.match_tree import (
    AT_MOST,
    EXAMINE,
    KINDS,
    LEAF,
    MatchTree,
    MatchTreeArrays,
    child,
)
from tamis.match.gryphon.related_tests import RelatedTests
from tamis.match.gryphon.successors import Successors, leap, refined, successors
from tamis.match.options import choice, flag, real_number, whole_number


class Search(NamedTuple):
    """Everything a search reads from the index."""

    tree: MatchTreeArrays
    factored: Factored
    follow: Successors
    leaps: bool  # whether the search uses `follow`
    levels: bool  # whether the tree has levels
    lists: Lists
    slots: Int32s
    exact: Int8s  # by slot
    always: Int64s  # slots without a path
    seen: Int64s  # by slot: stamp of the last event that met it


class Aguilera(Matcher):
    """Walk down a tree of tests along the edges of the event's results and along all stars.

    Every inner node tests the event. A clause is a path of results that ends at a leaf; a star edge
    stands for any result. Clauses share path prefixes, so a failed test rules out all clauses below
    it at once. A leaf holds the slots of equal clauses.

    `tree="general"`: nodes are elementary tests (the value of a; a <= c; a = c), in order of
    attribute popularity. If a clause lacks a node's test, it takes the edge of the result that its
    own predicates imply (price <= 5 implies price <= 9), otherwise the star. A range takes two
    nodes. `excludes`, `missing` and terms of several intervals other than `!=` are verified at the
    leaf.

    `tree="equality"`: one level per attribute; edges are values. A clause's path consists of its
    equalities. All other predicates (ranges, a second value of `contains`, ...) are verified at the
    leaf.

    `collapse` omits nodes with only a star edge; it pays when attributes are rarely tested. The
    general tree never has such nodes. `successors` annotates each node with the nodes to visit
    after a dead end, so that the search does not repeat tests at nodes that it only passes through;
    `aggressive` drops those that the dead end rules out. The annotations are static: the first
    match after a change recomputes them, at the cost of the whole tree. `factor` is the number of
    index attributes; there is one tree for each combination of their values and one for other
    values. A clause that does not constrain an index attribute is in all of its trees; one with a
    range is, in the general tree, in those of the values in the range. Attributes that would put a
    clause into more than `replication` trees on average are skipped. (Changes may double this
    average; then the trees are rebuilt.)
    Clauses with nothing to test in the tree are verified for every event.

    add O(descent), remove O(path + clauses of the leaf), both for each tree that contains the
    clause. When the number of clauses has doubled, the tree is rebuilt for the attributes that are
    then most popular. match O(nodes visited): expected O(subscriptions^(1 - λ)),
    λ = ln V / (ln V + ln (K + 1)), for uniform events over K attributes of V values and equalities
    only.

    Aguilera et al., PODC 1999; Le Subscribe, figure 7.

    Not in the paper: removal; unbound attributes (only the star edge) and several values (the edges
    of all values; verified when two of them may meet the two ends of a range). Any predicate of the
    clause may imply a result, not only the next one. Clauses added together are inserted in random
    order, because sorted constants would form a chain. An insertion follows at most 1024 stars,
    then branches off. A plain equality tree has at most 64 levels; equalities on further attributes
    are verified. A value without a tree of its own goes to the tree of other values and is
    verified, until the trees are rebuilt.
    When most predicates are ranges, few clauses share a node for an end of a range. The tree then
    visits more nodes than there are clauses, each a cache miss, and is inherently slower than
    `scan`. The equality tree is slower too when equalities are few, because most predicates are
    verified.

    Tally: `nodes` has the nodes visited, `predicates` the tests and the terms verified,
    `subscriptions` the clauses at the leaves reached.
    """

    tree = choice(
        "general", "tests of any sort, or a level for each attribute", "general", "equality"
    )
    collapse = flag(False, "leave out nodes that have a star edge only")
    successors = flag(False, "annotate nodes with where to go on when blocked")
    factor = whole_number(0, "attributes with a tree for each of their values", least=0)
    replication = real_number(8.0, "trees that a clause may be in, in the mean", least=1)

    aggressive = flag(False, "drop successors that a dead end rules out")

    def check_options(self) -> None:
        if self.aggressive and not self.successors:
            raise MatcherError("aggressive is about successors; set successors=True as well")

    def clear(self) -> None:
        self._shape: RelatedTests | FactoredTests | LevelTree
        if self.tree == "equality":
            self._shape = LevelTree(self.collapse, self.factor, self.replication)
        elif self.factor:
            self._shape = FactoredTests(self.factor, self.replication)
        else:
            self._shape = RelatedTests()
        self._postings = Postings()
        self._always = SlotSet()
        self._exact = np.zeros(0, np.int8)
        self._follow: Successors | None = None
        self._counters = Counters()
        self._built = 0  # number of clauses when the tree was last built

    @property
    def match_tree(self) -> MatchTree:
        """The tree, for statistics of its size."""
        return self._shape.tree

    @property
    def space(self) -> int:
        """Tree edges plus successors, once annotated: the paper's measure of space."""
        roots = int((self.match_tree.view.roots >= 0).sum())
        return len(self.match_tree) - roots + (len(self._follow.nodes) if self._follow else 0)

    @property
    def factored(self) -> list[int]:
        """The index attributes."""
        return [int(a) for a in self._factored.attribute]

    def find(self, batch: EventBatch) -> Matches:
        if self._outgrown():
            self._lay_out()
        tree = self.match_tree.view
        if self._follow is None:
            self._follow = self._annotated()
        factored = self._factored
        keys = len(self._exact) if len(factored.attribute) else 0
        search = Search(
            tree,
            factored,
            self._follow,
            self.successors,
            self.tree == "equality",
            self._postings.lists,
            self._postings.slots,
            self._exact,
            self._always.slots,
            self._counters.fit(0, keys).seen,
        )
        stamp = self._counters.stamps(len(batch))
        return self.run(_match, batch, search, stamp)

    def _annotated(self) -> Successors:
        tree, top = self.match_tree.view, self.match_tree.top
        if not self.successors:
            return successors(tree, 0)
        if self.tree == "general":
            return general_successors(tree, top, self.aggressive)
        plain = successors(tree, top)
        return refined(tree, top, plain) if self.aggressive else plain

    def check(self) -> None:
        super().check()
        self._postings.check()
        self._always.check()
        live = self.clauses.live_slots()
        placed = self._shape.check(self.clauses.view, live)
        lists, slots = self._postings.flat()
        there, wanted = np.lexsort((slots, lists)), np.lexsort((placed.slots, placed.lists))
        assert (lists[there] == placed.lists[wanted]).all(), "lists hold what paths lead to"
        assert (slots[there] == placed.slots[wanted]).all(), "lists hold what paths lead to"
        assert (np.sort(self._always.slots) == placed.rest).all()
        assert (self._exact[live] == placed.exact).all()
        nodes = self.match_tree.view.nodes[: self.match_tree.top]
        leaves = nodes["first"][nodes["test"] == LEAF]
        assert (self._postings.size[leaves] > 0).all(), "no leaf is empty"
        assert len(leaves) == int((self._postings.size > 0).sum())

    @property
    def _factored(self) -> Factored:
        return self._shape.factoring.view

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        if len(self.clauses) > 2 * self._built + 16:
            self._lay_out()
        else:
            self._insert(slots)

    def drop_clauses(self, slots: Slots) -> None:
        placed = self._shape.leave(self.clauses.view, slots)
        self._postings.remove(placed.lists, placed.slots)
        lists = np.unique(placed.lists)
        self._shape.prune(lists[self._postings.size[lists] == 0])
        self._always.remove(placed.rest)
        self._follow = None

    def _outgrown(self) -> bool:
        """Whether the attribute order or the factoring is out of date."""
        live = len(self.clauses)
        return 4 * live < self._built or self._shape.crowded(live)

    def _lay_out(self) -> None:
        """Rebuild the tree for the attributes that are most popular now."""
        self.clear()
        self._insert(self.clauses.live_slots(), pack=True)
        self._built = len(self.clauses)

    def _insert(self, slots: Slots, pack: bool = False) -> None:
        placed = self._shape.add(self.clauses.view, slots)
        if pack:
            placed = self._shape.pack(placed)
        self._postings.append(placed.lists, placed.slots)
        self._always.add(placed.rest)
        self._exact = grown(self._exact, self.clauses.slots)
        self._exact[slots] = placed.exact
        self._follow = None


@kernel
def _match(
    events: Pairs, clauses: ClauseArrays, width: int, search: Search, stamp: int
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: tests and terms evaluated, nodes visited, slots touched
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    roots = np.empty(len(search.tree.roots), np.int64)
    stack = np.empty(256, np.int64)
    lists = np.empty(256, np.int64)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = has_several(events.attribute, begin, end)
        if several:
            code = _bind_distinct(events, begin, end, first, last)
        else:
            code = events.code
            bind(events.attribute, begin, end, first, last)
        many = 0
        visits = 0
        trees = roots_of(search.factored, first, last, code, roots)
        for i in range(trees):
            if search.leaps and not several and not search.levels:
                stack, lists, many, visited = leap_general(
                    search.tree, search.follow, roots[i], first, last, code, stack, lists, many
                )
            elif search.leaps and not several:
                stack, lists, many, visited = leap(
                    search.tree, search.follow, roots[i], first, last, code, stack, lists, many
                )
            else:
                stack, lists, many, visited = _walk(
                    search.tree, roots[i], first, last, code, stack, lists, many
                )
            visits += visited
        work[0] += visits - many
        work[1] += visits
        full = found
        for i in range(many):
            start = search.lists.start[lists[i]]
            size = search.lists.size[lists[i]]
            out = ensure_capacity(out, full, size)
            work[2] += size
            for place in range(start, start + size):
                slot = search.slots[place]
                if trees > 1:
                    if search.seen[slot] == stamp + event:
                        continue
                    search.seen[slot] = stamp + event
                out[full] = slot
                full += 1
        out = ensure_capacity(out, full, len(search.always))
        work[2] += len(search.always)
        out[full : full + len(search.always)] = search.always
        full += len(search.always)
        found, looked = keep_matching(
            clauses, first, last, code, search.exact, trusted(several), out, found, full
        )
        work[0] += looked
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _walk(
    tree: MatchTreeArrays,
    root: int,
    first: Int64s,
    last: Int64s,
    code: Int64s,
    stack: Int64s,
    lists: Int64s,
    found: int,
) -> tuple[Int64s, Int64s, int, int]:
    """Append the lists of the leaves that an event reaches from a root to `lists[:found]`.

    Returns the stack and the lists, which may have grown, the number of lists, and the number of
    nodes visited. Each visit costs a cache miss, which is nearly all of the time.
    """
    visited = 0
    stack[0] = tree.roots[root]
    left = 1
    while left:
        left -= 1
        v = stack[left]
        while v >= 0:
            visited += 1
            node = tree.nodes[v]
            if node.test == LEAF:
                if found == len(lists):
                    lists = ensure_capacity(lists, found, 1)
                lists[found] = node.first
                found += 1
                break
            a, kind = node.test // KINDS, node.test % KINDS
            begin, end = first[a], last[a]
            if left + end - begin >= len(stack):
                stack = ensure_capacity(stack, left, end - begin + 1)
            if kind == EXAMINE:
                for at in range(begin, end):
                    below = child(tree, v, code[at])
                    if below >= 0:
                        stack[left] = below
                        left += 1
            else:
                yes = no = False
                for at in range(begin, end):
                    here = (
                        code[at] <= node.constant if kind == AT_MOST else code[at] == node.constant
                    )
                    yes |= here
                    no |= not here
                if yes and node.first >= 0:
                    stack[left] = node.first
                    left += 1
                if no and node.second >= 0:
                    stack[left] = node.second
                    left += 1
            v = node.star
    return stack, lists, found, visited


@kernel
def _bind_distinct(events: Pairs, begin: int, end: int, first: Int64s, last: Int64s) -> Int64s:
    """Like `bind`, but with distinct values per attribute; returns the codes that it refers to."""
    code = np.empty(end - begin, np.int64)
    n = 0
    at = begin
    while at < end:
        a = events.attribute[at]
        after = at + 1
        while after < end and events.attribute[after] == a:
            after += 1
        start = n
        for value in np.sort(events.code[at:after]):
            if n == start or value != code[n - 1]:
                code[n] = value
                n += 1
        if a < len(first):
            first[a], last[a] = start, n
        at = after
    return code
