"""BE-tree: balance under clauses that come in order, self-adjustment, and its options."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tamis.encode.clause import SOME
from tamis.encode.terms import Row
from tamis.match.base import Matcher
from tamis.match.dexin.be_tree.matcher import BETree
from tamis.match.dexin.be_tree.nodes import ATTRIBUTE, DEPTH, deepest
from tamis.match.registry import create
from tamis.testing.matcher_checks import add, answers, random_clause, random_event, remove

N = 5000
HIGHEST = 2**63 - 1


def _point(value: int, attribute: int = 0, term: int = 0) -> Row:
    return (attribute, term, SOME, value, value)


def _depth(tree: BETree) -> int:
    return int(tree._tree.buckets.rows[:, DEPTH].max())


def _cut_by(tree: BETree) -> set[int]:
    """The attributes that the root is partitioned by."""
    nodes = tree._tree
    return {int(nodes.partitions.rows[at, ATTRIBUTE]) for at in nodes.of(nodes.root)}


def _agree(tree: BETree, naive: Matcher, events: list[dict[int, list[int]]]) -> None:
    assert answers(tree, events) == answers(naive, events)
    tree.check()


ORDERS: dict[str, Callable[[int], Row]] = {
    "ascending": _point,
    "descending": lambda i: _point(N - i),
    "repeated in runs": lambda i: _point(i // 50),
    "repeated in turns": lambda i: _point(i % 50),
    "all the same": lambda i: _point(7),
    "outwards": lambda i: _point(i if i % 2 else -i),
    "inwards": lambda i: _point(i if i % 2 else 2 * N - i),
    "lower bounds": lambda i: (0, 0, SOME, i, HIGHEST),
    "intervals that overlap": lambda i: (0, 0, SOME, i, i + 10),
    "towards a value that half of them have": lambda i: _point(i if i % 2 else N),
    "away from a value that half of them have": lambda i: _point(-i if i % 2 else -N),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.slow
def test_buckets_stay_balanced_in_whatever_order_values_come(order: str) -> None:
    tree, naive = BETree(capacity=2), create("naive")
    events = [{0: [value]} for value in (0, 7, 49, N // 2, N - 1, N)] + [{}]
    for slot in range(N):
        for matcher in (tree, naive):
            add(matcher, {slot: [ORDERS[order](slot)]})
        if slot in (10, 100, 1000, N - 1):
            _agree(tree, naive, events)
    assert _depth(tree) <= deepest(N) <= 28


def test_clauses_that_come_in_sorted_batches_are_balanced_too() -> None:
    tree, naive = BETree(capacity=2), create("naive")
    for first in range(0, N, 100):
        batch = {slot: [_point(slot)] for slot in range(first, first + 100)}
        add(tree, batch)
        add(naive, batch)
    _agree(tree, naive, [{0: [value, value + 1]} for value in range(0, N, 500)])


@pytest.mark.parametrize("at_once", [1, 50])
@pytest.mark.slow
def test_a_tree_that_shrinks_gets_flatter(at_once: int) -> None:
    tree, naive = BETree(capacity=2), create("naive")
    clauses = {slot: [_point(slot)] for slot in range(2000)}
    for slot, rows in clauses.items():
        add(tree, {slot: rows})
    add(naive, clauses)
    before = _depth(tree)
    kept = 20  # those at the far end of the chain that they would have been
    for first in range(0, 2000 - kept, at_once):
        for matcher in (tree, naive):
            remove(matcher, range(first, min(first + at_once, 2000 - kept)))
        if first % 500 == 0:
            _agree(tree, naive, [{0: [value]} for value in (0, 500, 1000, 1999)])
    _agree(tree, naive, [{0: [value]} for value in range(1970, 2000)])
    assert _depth(tree) <= deepest(2 * kept) < before


def test_partitions_may_nest_as_deep_as_clauses_have_attributes() -> None:
    tree = BETree(capacity=2)
    alike = [_point(5, attribute, attribute) for attribute in range(600)]
    for slot in range(4):
        add(tree, {slot: alike})
    tree.check()
    event = {attribute: [5] for attribute in range(600)}
    assert answers(tree, [event, event | {400: [6]}]) == [{0, 1, 2, 3}, set()]
    remove(tree, [0, 1, 2])
    tree.check()


def test_a_value_that_many_share_does_not_move_whenever_its_neighbours_do() -> None:
    tree = BETree(capacity=2)
    add(tree, {slot: [_point(10**6)] for slot in range(1000)})
    moved = 0
    structure = tree._tree
    for slot in range(1000, 2000):
        before = structure.cell_of[:1000].copy()
        add(tree, {slot: [_point(slot)]})
        moved += int((structure.cell_of[:1000] != before).any())
    assert moved <= 10


def test_changes_of_all_kinds_keep_the_tree_in_order() -> None:
    chance = random.Random(11)
    tree, naive = BETree(capacity=1, min_partition=1, window=7), create("naive")
    held: list[int] = []
    for step in range(120):
        if held and step % 3 == 2:
            gone = chance.sample(held, chance.randint(1, len(held)))
            held = [slot for slot in held if slot not in gone]
            for matcher in (tree, naive):
                remove(matcher, gone)
        else:
            slots = [slot for slot in range(60) if slot not in held][: chance.randint(1, 20)]
            held += slots
            clauses = {slot: random_clause(chance) for slot in slots}
            for matcher in (tree, naive):
                add(matcher, clauses)
        _agree(tree, naive, [random_event(chance) for _ in range(5)])


def test_clauses_move_to_the_attribute_that_events_make_the_better_one() -> None:
    tree, naive = BETree(capacity=16, window=100), create("naive")
    clauses = {slot: [_point(slot % 40), _point(slot % 9, 1, 1)] for slot in range(400)}
    for matcher in (tree, naive):
        add(matcher, clauses)
    assert _cut_by(tree) == {0}, "of the two it has more values"
    # Events that have all of its values make it useless: whatever is below it is visited.
    events = [{0: list(range(40)), 1: [value % 9]} for value in range(100)]
    _agree(tree, naive, events)
    touched = tree.tally.subscriptions
    for _ in range(3):
        _agree(tree, naive, events)
    assert _cut_by(tree) == {1}
    tree.tally.reset()
    _agree(tree, naive, events)
    assert tree.tally.subscriptions * 8 < touched == 100 * 400


def test_a_useful_partition_is_left_alone() -> None:
    tree = BETree(capacity=8, window=50)
    add(tree, {slot: [_point(slot), _point(slot % 3, 1, 1)] for slot in range(400)})
    before = tree._tree.cell_of.copy()
    for _ in range(5):
        answers(tree, [{0: [value], 1: [1]} for value in range(50)])
    assert (tree._tree.cell_of == before).all()
