"""Progress reports of measurements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tamis.lab.results.records import Figure


class ProgressStep(NamedTuple):
    """The next step of a measurement: for progress bars, not stored.

    A measurement yields these if its results are minutes apart.
    """

    measurement: str
    what: str


FigureSteps = Iterator[Figure | ProgressStep]
