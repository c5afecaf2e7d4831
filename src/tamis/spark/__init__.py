"""tamis on Spark: match, check and read DataFrames, batch and streaming alike.

    matches = events.transform(tamis.spark.match("index", id="lot"))

Each function takes what the columns mean and gives a function of a DataFrame, for
`DataFrame.transform`. The session is the user's own; `session` starts one for those who have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.matching import match
    from tamis.spark.reading import from_json
    from tamis.spark.reports import report
    from tamis.spark.sessions import session
    from tamis.spark.validating import validate

__all__ = ["from_json", "match", "report", "session", "validate"]

# Imported when first used: a worker that reads one of these modules does not pay for the others.
_WHERE = {
    "from_json": "tamis.spark.reading",
    "match": "tamis.spark.matching",
    "report": "tamis.spark.reports",
    "session": "tamis.spark.sessions",
    "validate": "tamis.spark.validating",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tamis.spark' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]
