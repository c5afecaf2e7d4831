"""The curves of DEXIN's figures: six algorithms as in the paper and tuned, and `tamis`.

The paper gives τ = 1500 for DEXIN and no parameter of the other five. What was chosen: REIN has
1000 buckets and TAMA 13 levels, as in public implementations; both, like DEXIN's slots, are cells
of equal width. TAMA answers approximately, as in the paper. H-Tree has three levels of six cells
without a limit on clones: with more levels, clones of wide ranges would not fit into memory at a
million subscriptions. BE-Tree and OpIndex have the defaults of their matchers.

In the tuned mode each algorithm has the best options of a small grid. TAMA is exact there: fewer
levels would otherwise buy speed with wrong answers.
"""

from __future__ import annotations

from typing import Any

from tamis.lab.experiments.experiment import Curve, Mode

ALGORITHMS = ("tama", "h-tree", "be-tree", "opindex", "rein", "dexin")
OTHERS = ALGORITHMS[:-1]
OURS = "tamis"

PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    "tama": {"edges": "equal-width"},
    "h-tree": {"edges": "equal-width", "attributes": 3, "cells": 6, "max_clones": 0},
    "be-tree": {},
    "opindex": {},
    "rein": {"edges": "equal-width"},
    "dexin": {"edges": "equal-width"},
}

GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "tama": tuple({"exact": True, "levels": levels} for levels in (8, 10, 13)),
    "h-tree": tuple(
        {"attributes": attributes, "cells": cells, "max_clones": clones}
        for attributes, cells, clones in ((2, 10, 256), (3, 6, 256), (4, 4, 256), (6, 6, 64))
    ),
    "be-tree": tuple({"capacity": capacity} for capacity in (16, 64, 256, 1024)),
    "opindex": tuple({"segments": segments} for segments in (4, 32)),
    "rein": tuple({"buckets": buckets} for buckets in (100, 1000, 5000)),
    "dexin": tuple(
        {"slots": slots, "boundary": boundary}
        for slots, boundary in ((150, "exact"), (1500, "whole"), (1500, "exact"), (5000, "whole"))
    ),
}


def paper_curve(name: str, label: str = "", **options: Any) -> Curve:
    """An algorithm as in the paper. A label tells curves of one algorithm apart."""
    shown = f"{name}, {label}" if label else name
    return Curve(shown, Mode.PAPER, {**PAPER_OPTIONS[name], **options})


def paper_curves() -> tuple[Curve, ...]:
    """The six algorithms as in the paper, and `tamis`."""
    return (*(paper_curve(name) for name in ALGORITHMS), Curve(OURS, Mode.OURS))


def compared_curves() -> tuple[Curve, ...]:
    """All curves of a figure that compares six algorithms."""
    return (*paper_curves(), *(Curve(name, Mode.TUNED) for name in ALGORITHMS))
