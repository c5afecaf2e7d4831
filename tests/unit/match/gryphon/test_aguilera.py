"""The matching tree: its shape, how many nodes it visits, what its options do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.encode.clause import SOME
from tamis.match.gryphon.aguilera import Aguilera
from tamis.match.gryphon.match_tree import KINDS, LEAF, MatchTreeArrays, child
from tamis.match.gryphon.successors import Successors, successors
from tamis.match.registry import create
from tamis.testing.matcher_checks import add, answers, batch_of, remove
from tests.loaded import loaded

LOW, HIGH = -(2**63), 2**63 - 1
EQUALITY: dict[str, Any] = {"tree": "equality"}
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"successors": True},
    {"successors": True, "aggressive": True},
    {"factor": 2, "successors": True},
    EQUALITY,
    {**EQUALITY, "collapse": True},
    {**EQUALITY, "successors": True},
    {**EQUALITY, "collapse": True, "successors": True},
    {**EQUALITY, "factor": 2},
    {**EQUALITY, "factor": 3, "collapse": True},
    {**EQUALITY, "factor": 1, "successors": True},
    {**EQUALITY, "factor": 2, "collapse": True, "successors": True},
    {**EQUALITY, "factor": 1, "successors": True, "aggressive": True},
)


def _make(**options: Any) -> Aguilera:
    made = create("aguilera", **options)
    assert isinstance(made, Aguilera)
    return made


def _load(made: workload.Workload, events: int, **options: Any) -> tuple[Aguilera, EventBatch]:
    matcher = _make(**options)
    return matcher, loaded(made, matcher).encode(made.events(events))


def _visits(made: workload.Workload, **options: Any) -> float:
    matcher, batch = _load(made, 200, **options)
    matcher.match(batch)
    return matcher.tally.nodes / len(batch)


def _bound(subscriptions: int, attributes: int, values: int) -> float:
    """Expected nodes visited, at most, for any set of equalities and uniform events."""
    k1, log_v, log_k1 = attributes + 1, math.log(values), math.log(attributes + 1)
    grown = math.exp(math.log(subscriptions) * log_k1 / (log_v + log_k1))  # |S|^(1 - λ)
    return values * k1 * (k1 * grown - 1) * (log_v + log_k1) / ((values * k1 - 1) * log_k1)


@pytest.mark.parametrize(
    "shape",
    [
        {"attributes": 30, "values": 5},
        {"attributes": 6, "values": 3, "popularity": 0.7, "factor": 1.0, "exponent": 0.0},
    ],
)
def test_visits_stay_below_the_bound_and_grow_less_than_the_subscriptions(
    shape: dict[str, Any],
) -> None:
    sizes = (1000, 4000, 16000)
    visits = [_visits(workload.make("gryphon", n, seed=3, **shape), **EQUALITY) for n in sizes]
    for n, seen in zip(sizes, visits, strict=True):
        assert seen < _bound(n, shape["attributes"], shape["values"])
    growth = [math.log(b / a, 4) for a, b in pairwise(visits)]
    assert max(growth) < 0.8, f"visits grow like the subscriptions to the {growth}"


def test_collapse_saves_visits_and_most_where_attributes_are_rarely_tested() -> None:
    saved = []
    for factor in (0.95, 0.6):
        made = workload.make("gryphon", 4000, seed=5, factor=factor)
        plain, collapsed = _visits(made, **EQUALITY), _visits(made, **EQUALITY, collapse=True)
        assert collapsed < plain
        saved.append(plain / collapsed)
    assert saved[1] > 2 * saved[0]


def test_factoring_saves_visits_and_costs_space() -> None:
    made = workload.make("gryphon", 4000, seed=6)
    visits, space = [], []
    for factor in (0, 1, 2):
        matcher, batch = _load(made, 100, **EQUALITY, collapse=True, factor=factor)
        matcher.match(batch)
        assert len(matcher.factored) == factor
        visits.append(matcher.tally.nodes)
        space.append(matcher.space)
    assert visits == sorted(visits, reverse=True)
    assert space == sorted(space)


def test_space_is_linear_in_the_subscriptions() -> None:
    space = []
    for n in (2000, 16000):
        matcher, batch = _load(
            workload.make("gryphon", n, seed=7), 1, **EQUALITY, collapse=True, successors=True
        )
        matcher.match(batch)
        space.append(matcher.space)
    assert space[1] < 8 * 1.1 * space[0]


@pytest.mark.parametrize("name", ["gryphon", "lesubscribe"])
@pytest.mark.slow
def test_all_variants_give_the_same_answers(name: str) -> None:
    made = workload.make(name, 3000, seed=8)
    expected = None
    for options in VARIANTS:
        matcher, batch = _load(made, 60, **options)
        gone = matcher.clauses.live_slots()[::3]
        found = [_answers(matcher, batch)]
        terms = matcher.terms(gone)
        matcher.remove(gone)
        matcher.check()
        found.append(_answers(matcher, batch))
        matcher.add(gone, terms)
        matcher.check()
        found.append(_answers(matcher, batch))
        assert found[2] == found[0]
        expected = expected or found
        assert found == expected, options


def _answers(matcher: Aguilera, batch: EventBatch) -> list[set[int]]:
    return [set(slots) for slots in matcher.match(batch)]


# -- successors ------------------------------------------------------------------------------------


def _nodes_met(
    tree: MatchTreeArrays, follow: Successors | None, event: dict[int, int]
) -> list[int]:
    """The nodes that a search visits, in plain Python; by all edges without successors."""
    met, stack = [], [int(tree.roots[0])]
    while stack:
        v = stack.pop()
        owed, v = v >= 0, v if v >= 0 else ~v
        while v >= 0:
            met.append(v)
            node = tree.nodes[v]
            a = int(node["test"]) // KINDS
            leaf = node["test"] == LEAF
            below = -1 if leaf or a not in event else child(tree, v, event[a])
            above = -1 if node["parent"] < 0 else int(tree.nodes[node["parent"]]["level"])
            if follow is None or below < 0:
                stack += [int(node["star"])] if node["star"] >= 0 else []
            if follow is not None and owed and (below < 0 or node["level"] > above + 1):
                stack += follow.nodes[follow.starts[v] : follow.starts[v + 1]].tolist()
            v, owed = below, True
    return met


@pytest.mark.parametrize("collapse", [False, True])
def test_successors_visit_relevant_nodes_once_and_all_their_leaves(collapse: bool) -> None:
    made = workload.make("gryphon", 800, seed=9, attributes=8, values=3, factor=0.9)
    matcher, batch = _load(made, 50, **EQUALITY, collapse=collapse, successors=True)
    matcher.match(batch)
    tree = matcher.match_tree.view
    follow = successors(tree, matcher.match_tree.top)
    counted = skipped = 0
    for i in range(len(batch)):
        pairs = batch[i : i + 1].pairs
        event = dict(zip(pairs.attribute.tolist(), pairs.code.tolist(), strict=True))
        if i % 2:  # attributes that are not bound block the way, too
            event = {a: v for a, v in event.items() if (a + i) % 5}
        relevant = _nodes_met(tree, None, event)
        met = _nodes_met(tree, follow, event)
        assert len(met) == len(set(met)), "a node is visited twice"
        assert set(met) <= set(relevant), "a node is visited that does not agree with the event"
        leaves = {v for v in relevant if tree.nodes[v]["test"] == LEAF}
        assert leaves <= set(met), "a leaf is missed"
        matcher.tally.reset()
        matcher.match(batch_of([{a: [v] for a, v in event.items()}]))
        assert matcher.tally.nodes == len(met)
        counted += len(met)
        skipped += len(relevant) - len(met)
    assert skipped > 0


def test_successors_are_those_of_the_paper() -> None:
    """Against the definition, over paths: a tree of all levels, every node."""
    made = workload.make("gryphon", 300, seed=10, attributes=5, values=2, factor=0.9)
    matcher, batch = _load(made, 1, **EQUALITY, successors=True)
    matcher.match(batch)
    tree = matcher.match_tree.view
    paths = dict(_paths(tree, matcher.match_tree.top))
    nodes = {path: v for v, path in paths.items()}
    follow = successors(tree, matcher.match_tree.top)

    def trailing(path: tuple[int | None, ...]) -> list[int]:
        last = max((i for i, label in enumerate(path) if label is None), default=-1)
        return list(range(last + 1, len(path)))

    def resolve(path: tuple[int | None, ...]) -> list[int]:
        if path in nodes:
            return [nodes[path]]
        return [v for j in trailing(path) for v in resolve((*path[:j], None, *path[j + 1 :]))]

    for v, path in paths.items():
        wanted = [u for j in trailing(path) for u in resolve((*path[:j], None, *path[j + 1 :]))]
        assert sorted(wanted) == sorted(follow.nodes[follow.starts[v] : follow.starts[v + 1]])
        assert len(wanted) == len(set(wanted))


def _paths(tree: MatchTreeArrays, top: int) -> Iterator[tuple[int, tuple[int | None, ...]]]:
    for v in range(top):
        path: tuple[int | None, ...] = ()
        u = v
        while (p := int(tree.nodes[u]["parent"])) >= 0:
            path = (None if tree.nodes[p]["star"] == u else int(tree.label[u]), *path)
            u = p
        yield v, path


# -- shape -----------------------------------------------------------------------------------------


def test_a_clause_takes_the_edge_that_follows_from_what_it_asks() -> None:
    matcher = _make()
    add(matcher, {0: [(0, 0, SOME, LOW, 10), (1, 1, SOME, 1, 1)]})
    add(matcher, {1: [(0, 0, SOME, LOW, 5), (1, 1, SOME, 1, 1)]})
    assert answers(matcher, [{0: [20], 1: [1]}]) == [set()]
    assert matcher.tally.nodes == 1, "both hang below the edge that says: at most 10"
    assert answers(matcher, [{0: [7], 1: [1]}, {0: [3], 1: [1]}]) == [{0}, {0, 1}]


def test_equal_clauses_share_a_leaf_and_a_tree_shrinks_as_it_grew() -> None:
    for options in VARIANTS:
        matcher = _make(**options)
        one = {0: [(0, 0, SOME, 1, 1), (2, 1, SOME, 5, 5)]}
        add(matcher, one)
        nodes = len(matcher.match_tree)
        add(matcher, {1: one[0]})
        assert len(matcher.match_tree) == nodes
        add(matcher, {2: [(0, 0, SOME, 1, 1), (2, 1, SOME, 6, 6)], 3: [(0, 0, SOME, 1, 1)]})
        assert len(matcher.match_tree) > nodes
        remove(matcher, [2, 3])
        matcher.check()
        assert len(matcher.match_tree) == nodes
        assert answers(matcher, [{0: [1], 2: [5]}]) == [{0, 1}]


def test_tests_that_nothing_relates_make_a_chain_that_insertion_need_not_follow() -> None:
    matcher = _make()
    points = range(0, 9000, 3)
    clauses = {
        i: [(0, 0, SOME, LOW, c - 1), (0, 0, SOME, c + 1, HIGH)] for i, c in enumerate(points)
    }
    add(matcher, clauses)
    matcher.check()
    assert answers(matcher, [{0: [30]}, {0: [31]}]) == [set(clauses) - {10}, set(clauses)]
    remove(matcher, list(clauses)[::2])
    matcher.check()
    assert answers(matcher, [{0: [9]}]) == [set(list(clauses)[1::2]) - {3}]


def test_a_plain_tree_verifies_what_has_no_level() -> None:
    rng = np.random.default_rng(11)
    clauses = {
        slot: [
            (int(a), term, SOME, int(v), int(v))
            for term, (a, v) in enumerate(
                zip(np.sort(rng.choice(300, 3, replace=False)), rng.integers(0, 2, 3), strict=True)
            )
        ]
        for slot in range(500)
    }
    events = [{a: [int(v)] for a, v in enumerate(rng.integers(0, 2, 300))} for _ in range(5)]
    found = []
    for options in (EQUALITY, {**EQUALITY, "collapse": True}):
        matcher = _make(**options)
        add(matcher, clauses)
        found.append(answers(matcher, events))
        matcher.check()
    assert found[0] == found[1]
    assert any(found[0])


# -- factoring -------------------------------------------------------------------------------------


def test_factoring_passes_over_attributes_that_would_copy_too_much() -> None:
    clauses = {}
    for slot in range(200):
        rows = [(1, 0, SOME, slot % 4, slot % 4)]
        if slot % 2:  # half of the clauses would be copied for each of a hundred values
            rows = [(0, 0, SOME, slot, slot), (1, 1, SOME, slot % 4, slot % 4)]
        clauses[slot] = rows
    for replication, chosen in ((8.0, [1]), (60.0, [1, 0])):
        matcher = _make(**EQUALITY, factor=2, replication=replication)
        add(matcher, clauses)
        assert matcher.factored == chosen
        expected = {slot for slot in clauses if slot % 4 == 3 and slot in (3, 7)} & {7}
        assert answers(matcher, [{0: [7], 1: [3]}]) == [expected]
        matcher.check()


def test_values_that_have_no_tree_are_found_and_get_one_in_time() -> None:
    matcher = _make(**EQUALITY, factor=1)
    add(matcher, {slot: [(0, 0, SOME, slot % 3, slot % 3)] for slot in range(60)})
    assert matcher.factored == [0]
    trees = len(matcher.match_tree.view.roots)
    for slot in range(60, 110):
        add(matcher, {slot: [(0, 0, SOME, 7, 7), (1, 1, SOME, 1, 1)]})
        assert answers(matcher, [{0: [7], 1: [1]}]) == [set(range(60, slot + 1))]
        matcher.check()
    assert len(matcher.match_tree.view.roots) == trees + 1
    # Several values go to several trees; a clause that is in both is met once.
    add(matcher, {110: [(1, 0, SOME, 1, 1)]})
    assert answers(matcher, [{0: [0, 7, 7, 9], 1: [1]}]) == [
        set(range(0, 60, 3)) | set(range(60, 111))
    ]


@pytest.mark.parametrize("name", ["gryphon", "lesubscribe"])
def test_successors_save_visits_in_the_general_tree_too(name: str) -> None:
    made = workload.make(name, 1500, seed=5, **({"p": 0.3} if name == "lesubscribe" else {}))
    visits, leaves = [], []
    for options in ({}, {"successors": True}, {"successors": True, "aggressive": True}):
        matcher, batch = _load(made, 100, **options)
        found = matcher.match(batch)
        visits.append(matcher.tally.nodes)
        leaves.append([sorted(event) for event in found])
    assert visits[2] < visits[1] < visits[0]
    assert leaves[2] == leaves[1] == leaves[0], "each match once"


def test_a_dead_end_rules_out_successors_that_need_one_of_its_edges() -> None:
    # Blocked below a0 = 1 at a1, the value of a1 is neither 1 nor 2: the star of a0 leads to a node
    # that has no other edges.
    rows = [[(0, 0, SOME, 1, 1), (1, 1, SOME, v, v)] for v in (1, 2)]
    rows += [[(1, 0, SOME, 1, 1)], [(1, 0, SOME, 2, 2)]]
    rows += [[(0, 0, SOME, 1, 1), (2, 1, SOME, 1, 1)], [(2, 0, SOME, 1, 1)]]
    rows += [[(0, 0, SOME, 5, 5)]] * 4  # the more popular attribute is tested first
    for tree in ("general", "equality"):
        visits = []
        for aggressive in (False, True):
            matcher = _make(tree=tree, successors=True, aggressive=aggressive)
            add(matcher, dict(enumerate(rows)))
            assert answers(matcher, [{0: [1], 1: [7], 2: [1]}]) == [{4, 5}]
            visits.append(matcher.tally.nodes)
        assert visits[1] == visits[0] - 1


def test_the_general_tree_is_factored_by_values_that_agree_with_a_clause() -> None:
    tree = _make(factor=1, replication=100)
    rows = {slot: [(0, 0, SOME, slot % 8, slot % 8), (1, 1, SOME, LOW, slot)] for slot in range(80)}
    rows |= {80: [(0, 0, SOME, 2, 5)], 81: [(1, 0, SOME, 3, HIGH)]}
    rows |= {82: [(0, 0, SOME, 2, HIGH), (0, 1, SOME, LOW, 1), (1, 2, SOME, 0, 0)]}
    add(tree, rows)
    tree.check()
    assert tree.factored == [0]
    copies = np.bincount(tree._postings.flat()[1])
    assert copies[:80].max() == 1
    assert copies[80] == 4 + 1, "the values in the range, and others"
    assert copies[81] == copies[82] == 8 + 1, "different values may satisfy two terms"
    events = [{0: [3], 1: [75]}, {0: [9], 1: [9]}, {0: [0, 4], 1: [0]}, {1: [3]}]
    assert answers(tree, events) == [
        {75, 80, 81},
        {81},
        {0, 4, 8, 12, 80, 82} | {slot for slot in range(16, 80) if slot % 4 == 0},
        {81},
    ]
    remove(tree, list(range(0, 80, 3)))
    tree.check()
