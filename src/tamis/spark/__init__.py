"""tamis on Spark: match, check and read DataFrames, batch and streaming alike.

    matches = events.transform(tamis.spark.match("index", id="lot"))

Each function takes what the columns mean and gives a function of a DataFrame, for
`DataFrame.transform`. The session is the user's own; `session` starts one for those who have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis import lazy_names

if TYPE_CHECKING:
    from tamis.spark.frames.json_frame import from_json
    from tamis.spark.frames.match_frame import match
    from tamis.spark.frames.validate_frame import validate
    from tamis.spark.runtime.operator_reports import report
    from tamis.spark.runtime.sessions import session
    from tamis.spark.stream.checkpoint import mend_checkpoint

__all__ = ["from_json", "match", "mend_checkpoint", "report", "session", "validate"]

# Imported when first used: a worker that reads one of these modules does not pay for the others.
_WHERE = {
    "from_json": "tamis.spark.frames.json_frame",
    "match": "tamis.spark.frames.match_frame",
    "mend_checkpoint": "tamis.spark.stream.checkpoint",
    "report": "tamis.spark.runtime.operator_reports",
    "session": "tamis.spark.runtime.sessions",
    "validate": "tamis.spark.frames.validate_frame",
}


__getattr__, __dir__ = lazy_names(__name__, _WHERE)
