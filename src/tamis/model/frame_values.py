"""What DataFrames bring: missing values (NaN, NaT, NA), and an index without a name.

None is an ordinary null.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from tamis.model.domain import DEPTH_LIMIT

UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # its name in Arrow, from pandas
_PANDAS = "pandas"
_NAMES = ("NaTType", "NAType")


def is_missing(value: Any) -> bool:
    """Whether a value of a dict is NaN, NaT or NA."""
    kind = type(value)
    if kind is float or isinstance(value, (float, Decimal)) or kind.__module__ == "numpy":
        return bool(getattr(value, "ndim", 0) == 0 and value != value)
    return kind.__name__ in _NAMES and kind.__module__.startswith(_PANDAS)


def without_missing(value: Any, depth: int = 0) -> Any:
    """An event, or a part of one, without missing values; no attribute is deeper than looked at."""
    if depth > DEPTH_LIMIT:
        return value
    if isinstance(value, dict):
        kept = ((name, each) for name, each in value.items() if not is_missing(each))
        return {name: without_missing(each, depth + 1) for name, each in kept}
    if isinstance(value, list):
        return [without_missing(each, depth + 1) for each in value if not is_missing(each)]
    return value


def without_nulls(value: Any) -> Any:
    """A row of a table, or a part of one, as an event: there, null is absent."""
    if isinstance(value, dict):
        inner = {name: without_nulls(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value
