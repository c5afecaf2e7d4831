"""What a measurement says of itself while it runs."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """What a measurement turns to next: for progress bars, and kept nowhere.

    A measurement that takes minutes to its next result gives some of these in between.
    """

    measurement: str
    what: str
