"""Check the invariants of a BE-tree. Slow; for tests."""

from __future__ import annotations

import numpy as np

from tamis.index.clauses import ClauseStorage
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.match.dexin.be_tree.hulls import hulls
from tamis.match.dexin.be_tree.nodes import (
    ATTRIBUTE,
    BUCKET,
    COUNT,
    DEPTH,
    HIGH,
    LOW,
    OWNER,
    PARTITION,
    UP,
    WEIGHT,
    TreeNodes,
    deepest,
)

Path = dict[int, tuple[int, int]]
"""By attribute, the interval that encloses all clauses of a cell."""


def check(tree: TreeNodes, clauses: ClauseStorage) -> None:
    """Raise if a clause is not where insertion would put it, or a count or depth is wrong."""
    tree.leaves.check()
    cells: list[tuple[int, Path]] = [(tree.root, {})]  # grows during the loop
    partitions = held = 0
    for cell, path in cells:
        slots = tree.leaves.items(cell)[0].astype(np.int64)
        held += len(slots)
        assert (tree.cell_of[slots] == cell).all()
        for attribute, (low, high) in path.items() if len(slots) else ():
            has, lows, highs = hulls(clauses.view, slots, attribute)
            assert has.all()
            assert ((lows >= low) & (highs <= high)).all(), "buckets enclose their clauses"
        for partition in tree.of(cell):
            partitions += 1
            assert tree.partitions.rows[partition, OWNER] == cell
            attribute = int(tree.partitions.rows[partition, ATTRIBUTE])
            assert attribute not in path, "an attribute is used once on a path"
            assert not hulls(clauses.view, slots, attribute)[0].any(), "partitions come first"
            cells += _check_buckets(tree, clauses, partition, path)
    assert held == len(clauses)
    assert len(tree.partitions) == partitions, "unused nodes are recycled"
    assert len(tree.buckets) + 1 == len(tree.cells) == len(cells), "unused nodes are recycled"


def _check_buckets(
    tree: TreeNodes, clauses: ClauseStorage, partition: int, path: Path
) -> list[tuple[int, Path]]:
    """Check the buckets of a partition; returns their cells."""
    attribute, _, top, _, count, peak = tree.partitions.rows[partition].tolist()
    assert 0 < count <= peak <= 2 * count, "a partition that has lost half is rebuilt"
    rows = tree.buckets.rows
    assert rows[top, [LOW, HIGH, UP, DEPTH, WEIGHT]].tolist() == [LOWEST, HIGHEST, -1, 0, count]
    cells: list[tuple[int, Path]] = []
    stack = [top]
    while stack:
        bucket = stack.pop()
        low, high, left, right, cell, _, _, depth, weight = rows[bucket].tolist()
        assert rows[bucket, PARTITION] == partition
        assert tree.cells.rows[cell, BUCKET] == bucket
        assert depth <= deepest(peak), "the buckets of a partition are balanced"
        cells.append((cell, path | {attribute: (low, high)}))
        below = int(tree.leaves.size[cell])
        below += sum(int(tree.partitions.rows[inner, COUNT]) for inner in tree.of(cell))
        if left >= 0:
            halves = rows[[left, right]]
            cut = int(halves[0, HIGH])
            assert halves[0, LOW] == low <= cut < high == halves[1, HIGH]
            assert halves[1, LOW] == cut + 1
            assert (halves[:, UP] == bucket).all()
            assert (halves[:, DEPTH] == depth + 1).all()
            below += int(halves[:, WEIGHT].sum())
            slots = tree.leaves.items(cell)[0].astype(np.int64)
            _, lows, highs = hulls(clauses.view, slots, attribute)
            assert ((lows <= cut) & (highs > cut)).all(), "no half encloses what stays above"
            stack += [left, right]
        assert below == weight
    return cells
