"""What a measurement reports while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tamis.lab.results.records import Figure


class ProgressStep(NamedTuple):
    """What a measurement does next: for progress bars, not stored.

    A measurement yields these if its results are minutes apart.
    """

    measurement: str
    what: str


FigureSteps = Iterator[Figure | ProgressStep]
