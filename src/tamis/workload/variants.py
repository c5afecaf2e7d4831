"""The workloads of figures and comparisons, by name, with their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tamis.errors import TamisError, nearest


@dataclass(frozen=True)
class Variant:
    """A workload with some parameters set."""

    title: str
    workload: str
    parameters: dict[str, Any] = field(default_factory=dict)


VARIANTS: dict[str, Variant] = {
    "dexin": Variant("DEXIN", "dexin"),
    "dexin-matching": Variant("DEXIN, 1 % matching", "dexin", {"matching": 0.01}),
    "lesubscribe": Variant("Le Subscribe", "lesubscribe"),
    "lesubscribe-equality": Variant("Le Subscribe, equality", "lesubscribe", {"p": 1.0}),
    "topss-w4": Variant("TOPSS W4", "topss", {"setting": "W4"}),
    "topss-w0": Variant("TOPSS W0", "topss", {"setting": "W0"}),
    "gryphon": Variant("Gryphon", "gryphon"),
    "sparse": Variant("wide and sparse", "sparse"),
    "auctions": Variant("auctions", "auctions"),
}


def variant(name: str) -> Variant:
    """A line of the table."""
    if name not in VARIANTS:
        raise TamisError(f"there is no workload {name!r}; {nearest(name, VARIANTS)}")
    return VARIANTS[name]
