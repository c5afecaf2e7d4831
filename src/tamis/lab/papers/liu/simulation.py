"""Counts of an independent simulation of the paper's generator.

The simulation was written apart from tamis and counts evaluations only. It drew each setting once
and averaged over three events; under Zipf's law two draws differ by a tenth. Its naive took the
predicates in the order of a Python set. Each line holds naive as a set, Sequential, Sub-Order and
the adaptive greedy order.
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.lab.papers.liu.scheduling import ADAPTIVE, NAIVE_SET, SEQUENTIAL, SUB_ORDER

SIMULATED = (NAIVE_SET, SEQUENTIAL, SUB_ORDER, ADAPTIVE)
Counts = tuple[float, float, float, float]

BY_SUBSCRIPTIONS: dict[float | str, Counts] = {
    2_000: (2304, 2205, 1760, 1884),
    10_000: (9248, 7919, 5865, 5654),
    20_000: (14973, 12170, 9054, 8386),
    40_000: (21635, 16696, 12730, 11697),
    80_000: (28001, 21007, 17093, 15333),
}
BY_PREDICATES: dict[float | str, Counts] = {
    2_000: (1590, 850, 782, 685),
    10_000: (3735, 1573, 1457, 1251),
    30_000: (5698, 2180, 2140, 1764),
}
BY_LENGTH: dict[float | str, Counts] = {
    5: (2767, 1284, 1219, 1055),
    7: (2530, 1135, 1054, 902),
    9: (2089, 832, 807, 653),
    11: (2052, 783, 716, 618),
}


def simulated(counts: Mapping[float | str, Counts], x: float | str) -> str:
    """What the simulation counted at one place, for a reason."""
    pairs = zip(SIMULATED, counts[x], strict=True)
    return ", ".join(f"{name} {count:,.0f}" for name, count in pairs)
