"""Interval trees find what a plain list of intervals finds, through any changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.files.arrays import Int64s
from tamis.match.lesubscribe.ibs_tree import IbsTrees, descend

LOW, HIGH = -(2**63), 2**63 - 1
Key = tuple[int, int]  # tree, owner
Plain = dict[Key, list[tuple[int, int]]]


def _columns(plain: Plain) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    rows = [(tree, low, high, owner) for (tree, owner), at in plain.items() for low, high in at]
    table = np.array(rows, np.int64).reshape(len(rows), 4)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].copy()


def _containing(trees: IbsTrees, tree: int, value: int) -> list[int]:
    found: list[int] = []
    node = int(trees.nodes.root[tree]) if tree < len(trees.nodes.root) else -1
    while node >= 0:
        marks, node = descend(trees.nodes, node, value)
        start = trees.lists.start[marks]
        found += trees.owners[start : start + trees.lists.size[marks]].tolist()
    return sorted(found)


def _agree(trees: IbsTrees, plain: Plain, values: list[int]) -> None:
    trees.check(*_columns(plain))
    for tree in range(3):
        for value in values:
            expected = [
                owner
                for (at, owner), intervals in plain.items()
                if at == tree and any(low <= value <= high for low, high in intervals)
            ]
            assert _containing(trees, tree, value) == sorted(expected)


def _random_intervals(chance: random.Random, ends: list[int]) -> list[tuple[int, int]]:
    """A point, an interval or two disjoint ones, possibly next to each other."""
    points = sorted(chance.sample(ends, chance.choice([1, 2, 2, 2, 4])))
    if len(points) == 1:
        return [(points[0], points[0])]
    return list(zip(points[::2], points[1::2], strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_random_changes_keep_every_mark_in_its_place(seed: int) -> None:
    chance = random.Random(seed)
    ends = [LOW, LOW + 1, HIGH - 1, HIGH, *range(chance.choice([5, 40]))]
    trees, plain = IbsTrees(), Plain()
    for step in range(200):
        if step == 100 and seed % 2:
            trees.build(*_columns(plain))
        key = chance.randrange(3), chance.randrange(100)
        if key not in plain and chance.random() < 0.6:
            plain[key] = _random_intervals(chance, ends)
            for low, high in plain[key]:
                trees.add(key[0], low, high, key[1])
        elif plain:
            key = chance.choice(sorted(plain))
            for low, high in plain.pop(key):
                trees.remove(key[0], low, high, key[1])
        _agree(trees, plain, chance.sample(ends, 4))


def test_equal_intervals_share_their_nodes_and_removing_all_leaves_none() -> None:
    trees, plain = IbsTrees(), {(1, owner): [(3, 8)] for owner in range(50)}
    trees.build(*_columns(plain))
    assert len(trees) == 2
    _agree(trees, plain, [2, 3, 5, 8, 9])
    chance = random.Random(3)
    plain = {(0, owner): _random_intervals(chance, list(range(200))) for owner in range(300)}
    trees.build(*_columns(plain))
    for (tree, owner), intervals in plain.items():
        for low, high in intervals:
            trees.remove(tree, low, high, owner)
    assert len(trees) == trees.marks == 0
    trees.check(*_columns({}))


def test_bulk_and_ordered_insertion_both_give_low_trees() -> None:
    columns = [np.zeros(2000, np.int64), np.arange(2000), np.arange(2000), np.arange(2000)]
    bulk, ordered = IbsTrees(), IbsTrees()
    bulk.build(*columns)
    for at in range(2000):  # ascending keys: a tree that is not balanced becomes a list
        ordered.add(0, at, at, at)
    assert _height(bulk) == 11
    assert _height(ordered) < 40


def _height(trees: IbsTrees) -> int:
    level, height = [int(trees.nodes.root[0])], 0
    while level:
        height += 1
        level = [int(c) for node in level for c in trees.nodes.child[node] if c >= 0]
    return height
