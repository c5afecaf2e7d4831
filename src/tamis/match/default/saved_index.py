"""The saved form of an index: its arrays without spare capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tamis.files.arrays import Arrays, add_prefix, flatten, unflatten
from tamis.match.default.structure.buckets import ENTRY, POOL_TOP, VALUES_TOP
from tamis.match.default.structure.family import BLOCK, Family, blocks_of
from tamis.match.default.structure.guide import make_guide
from tamis.match.default.structure.routes import RoutedIndex


def trimmed(index: RoutedIndex) -> RoutedIndex:
    """The same index without spare capacity."""
    buckets = index.buckets
    return index._replace(
        sparse=_trimmed(index.sparse),
        dense=_trimmed(index.dense),
        buckets=buckets._replace(
            pool=buckets.pool[: ENTRY * int(buckets.head[POOL_TOP])],
            values=buckets.values[: int(buckets.head[VALUES_TOP])],
        ),
    )


def restored(arrays: Mapping[str, NDArray[Any]]) -> RoutedIndex:
    """An index from its saved arrays. Builds the guide to the cells if the save lacks one."""
    if "cells.guide.start" not in arrays:
        made = make_guide(arrays["cells.start"], arrays["cells.cuts"])
        arrays = Arrays({**arrays, **add_prefix("cells.guide", flatten(made))})
    return unflatten(RoutedIndex, arrays)


def _trimmed(family: Family) -> Family:
    blocks, capacity = blocks_of(family), len(family.slot_of) // BLOCK
    if blocks == capacity:
        return family
    kept = family._replace(
        **{
            name: getattr(family, name)[: len(getattr(family, name)) // capacity * blocks]
            for name in ("bits", "edges", "records", "slot_of")
        }
    )
    # `edges` must stay non-empty in a dense family: that is what marks it as dense.
    return kept if blocks else kept._replace(edges=family.edges[: min(1, len(family.edges))])
