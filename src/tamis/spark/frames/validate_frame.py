"""`validate`: the consistent events of a DataFrame, and the others with their reasons.

The check is a function of the columns that are attributes: only these go to the workers, and the
other columns stay in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.encode.tables.frames import ABSENT, check_missing, nan_as_null
from tamis.errors import SchemaError, SparkError
from tamis.model.schema import Schema
from tamis.spark.frames.frame_columns import attribute_sources, check_unambiguous, quoted
from tamis.spark.runtime.worker_cache import schema_document, schema_encoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    GoodAndBad = tuple[DataFrame, DataFrame]

REASON = "reason"


def validate(
    schema: Schema, *, reason: str = REASON, missing: str = ABSENT
) -> Callable[[DataFrame], GoodAndBad]:
    """A function of a DataFrame, batch or streaming, that gives two: the good and the bad.

    The good are the events that are consistent with the schema (domains, and rules R1 to R3); the
    bad have one more column, `reason`. Both have all other columns. Together they are all rows, but
    each of the two reads the events for itself: persist events that are costly to read. NaN is
    absent, as null is, unless `missing="refuse"`.

        good, bad = tamis.spark.validate(schema)(events)
    """
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")

    check_missing(missing)

    def separate(events: DataFrame) -> GoodAndBad:
        checked = with_reason(events, schema, reason, missing)
        name = f"`{reason}`"
        good = checked.where(f"{name} is null").drop(reason)
        return good, checked.where(f"{name} is not null")

    return separate


def with_reason(
    events: DataFrame, schema: Schema, reason: str = REASON, missing: str = ABSENT
) -> DataFrame:
    """All rows with one more column: why a row is refused, null for an event."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType

    if reason in events.columns:
        raise SparkError(
            f"there is a column {reason!r} already; name another for the reason: "
            "validate(schema, reason=…)"
        )
    found = attribute_sources(schema, events.schema)
    for path in found:
        check_unambiguous(events, path)
    check = _check(schema_document(schema), list(map(".".join, found)), missing)
    arrow_udf: Any = getattr(functions, "arrow_udf")  # noqa: B009 - Spark's types leave it out
    # Spark may call a function again for each use of its result, unless that might change.
    refusal = arrow_udf(check, StringType()).asNondeterministic()
    columns = [functions.col(quoted(*path)) for path in found]
    return events.withColumn(reason, refusal(*columns))


def _check(schema: str, names: list[str], missing: str) -> Callable[..., pa.Array]:
    def reasons(*columns: pa.Array) -> pa.Array:
        from tamis.encode.lines.json_lines import reason_column
        from tamis.encode.validation import validate

        table = pa.table(list(columns), names=names)
        table = nan_as_null(table) if missing == ABSENT else table
        return reason_column(validate(schema_encoder(schema), table).refused, table.num_rows)

    return reasons
