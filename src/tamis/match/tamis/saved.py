"""An index without the room that it keeps for more."""

from __future__ import annotations

from tamis.index.buckets import ENTRY, POOL_TOP, VALUES_TOP
from tamis.index.family import BLOCK, Family, blocks_of
from tamis.index.routes import Index


def trimmed(index: Index) -> Index:
    """The same, without the room that is kept for more clauses."""
    buckets = index.buckets
    return index._replace(
        sparse=_trimmed(index.sparse),
        dense=_trimmed(index.dense),
        buckets=buckets._replace(
            pool=buckets.pool[: ENTRY * int(buckets.head[POOL_TOP])],
            values=buckets.values[: int(buckets.head[VALUES_TOP])],
        ),
    )


def _trimmed(family: Family) -> Family:
    blocks, room = blocks_of(family), len(family.slot_of) // BLOCK
    if blocks == room:
        return family
    kept = family._replace(
        **{
            name: getattr(family, name)[: len(getattr(family, name)) // room * blocks]
            for name in ("bits", "edges", "records", "slot_of")
        }
    )
    # What tells a dense family from a sparse one is that it has any.
    return kept if blocks else kept._replace(edges=family.edges[: min(1, len(family.edges))])
