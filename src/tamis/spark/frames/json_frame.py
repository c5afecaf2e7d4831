"""`from_json`: lines of text to the columns of a schema, parsed in Spark's workers.

A line that is not an event becomes a row with the reason in the column `dead` and null in the
others. It never fails a task, and no line is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.encode.arrow import one_chunk
from tamis.encode.json_events import has_dynamic
from tamis.encode.lines.event_columns import nested
from tamis.errors import SchemaError, SparkError
from tamis.model.schema import Schema
from tamis.spark.frames.frame_columns import KeptColumn, column_of, select_columns, struct_of
from tamis.spark.runtime.worker_cache import schema_document, schema_encoder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DEAD = "dead"
_TEXT = "the text"


def from_json(
    schema: Schema,
    column: str | Column = "value",
    *,
    keep: Iterable[str | Column] = (),
    dead: str = DEAD,
) -> Callable[[DataFrame], DataFrame]:
    """A function for `DataFrame.transform`: text or bytes of JSON, an event a row, to columns.

    It gives the columns to `keep`, a column for each attribute (an array where there may be several
    values, a struct for names with dots), and `dead`: null, or why the line is refused. Lines are
    validated as by `tamis.spark.validate`. Keep the column that identifies events, and the text
    itself if dead letters are to show it.

        events = lines.transform(tamis.spark.from_json(schema, keep=["value", "offset"]))
    """
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    if has_dynamic(schema):
        raise SparkError(
            "from_json makes a column for each attribute, and a dynamic one has values of several "
            "types; declare the attributes (Schema.infer proposes a schema), or publish the lines "
            "to a log"
        )
    kept: list[str | Column] = [keep] if isinstance(keep, str) else list(keep)
    if dead in schema.attributes:
        raise SparkError(f"{dead!r} is an attribute; name another column for reasons: dead=…")

    def read(lines: DataFrame) -> DataFrame:
        return _transform(lines, schema, column, kept, dead)

    return read


def _transform(
    lines: DataFrame, schema: Schema, column: str | Column, keep: list[str | Column], dead: str
) -> DataFrame:
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    typed = struct_of(schema)
    # Under a name of its own: the text may be kept too.
    text = column_of(lines, column).alias(_TEXT)
    chosen = select_columns(lines, None, [text, *keep], taken=(*typed.names, dead))
    kind, *kept = chosen.struct.fields
    if not isinstance(kind.dataType, (StringType, BinaryType)):
        raise SparkError(
            f"{column if isinstance(column, str) else 'the column'!r} is "
            f"{kind.dataType.simpleString()}, expected JSON as string or binary"
        )
    task = _LinesTask(schema_document(schema), chosen.extras[1:], tuple(typed.names), dead)
    result = StructType([*kept, *typed.fields, StructField(dead, StringType())])
    return chosen.frame.mapInArrow(task.run, result)


class _LinesTask(NamedTuple):
    """What a worker needs."""

    schema: str
    keep: tuple[KeptColumn, ...]
    columns: tuple[str, ...]
    dead: str

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tamis.encode.lines.json_lines import LineReader

        lines = LineReader(schema_encoder(self.schema))
        for batch in batches:
            parsed = lines.parse(batch.column(0))
            events = parsed.events
            flat = {name: one_chunk(events.column(name)) for name in events.column_names}
            tops = nested(flat, _struct)
            columns = {extra.name: batch.column(extra.at) for extra in self.keep}
            columns |= {name: tops[name] for name in self.columns}
            columns[self.dead] = parsed.reasons
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _struct(below: dict[str, pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(list(below.values()), names=list(below))
