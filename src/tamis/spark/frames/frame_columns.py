"""Which columns of a DataFrame are which attributes, checked before anything runs.

A task that fails an hour into a job fails late. So the names and types of columns are checked here:
a missing column, one of a wrong type, one whose name is almost that of an attribute.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tamis.encode.lines.event_columns import arrow_types, nested
from tamis.errors import SparkError, suggestion
from tamis.model.domain import Boolean, Decimal, Domain, Integer, Text, Timestamp
from tamis.model.elements.structs import Structs
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.schema import EVENT_TYPE, Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TEXTS = ("string", "varchar", "char")
_FITTING: dict[type[Domain], tuple[str, ...]] = {
    Integer: _NUMBERS,
    Decimal: _NUMBERS,
    Text: _TEXTS,
    Enumerated: _TEXTS,
    Hierarchy: _TEXTS,
    Boolean: ("boolean",),
    Timestamp: ("timestamp", "timestamp_ntz", "date", *_TEXTS),
    Structs: ("struct",),
}
_MOMENT = "$now"  # no result has a column of this name
_SAME = 0.8  # alike enough for a misspelling; `ts` and `tags` are not


Path = tuple[str, ...]
"""A column, or a field of a struct. Joined by dots, it is the name of its attribute."""


def check_attributes(names: Iterable[str], known: Collection[str], where: str) -> None:
    """Refuse names that are not attributes of the events."""
    for name in names:
        if name not in known:
            raise SparkError(
                f"{where}: the events have no attribute {name!r}{suggestion(name, known)}"
            )


def quoted(*path: str) -> str:
    """The name of a column or a field, quoted for Spark."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)


def attribute_sources(schema: Schema, struct: StructType, known: Iterable[str] = ()) -> list[Path]:
    """Where a DataFrame has its attributes, in the order of its columns.

    Raises a `SparkError` if a mandatory attribute has no column, if a column has a wrong type, and
    if a column is named almost like an attribute that has none. Columns that are `known` for
    another use, and all others, are left alone. In an open schema every column may hold attributes.
    """
    if schema.is_open:
        return [(field.name,) for field in struct.fields]
    found: dict[str, Path] = {}
    others: dict[str, DataType] = {}
    for path, kind in _leaves(struct, schema):
        name = ".".join(path)
        if name not in schema.attributes:
            others[name] = kind
            continue
        if name in found:
            raise SparkError(f"two columns give the attribute {name!r}; drop one of them")
        _check(schema, name, kind)
        found[name] = path
    exempt = set(known)
    strange = {name: kind for name, kind in others.items() if name not in exempt}
    _check_parents(schema, found, strange)
    _check_missing(schema, found, list(others))
    _check_alike(schema, found, list(strange))
    return list(found.values())


def _leaves(
    struct: StructType, schema: Schema, above: Path = ()
) -> Iterator[tuple[Path, DataType]]:
    """Columns, and the fields of structs; an opaque attribute may be a struct itself."""
    from pyspark.sql.types import StructType

    for field in struct.fields:
        path = (*above, field.name)
        if isinstance(field.dataType, StructType) and ".".join(path) not in schema.attributes:
            yield from _leaves(field.dataType, schema, path)
        else:
            yield path, field.dataType


def _check(schema: Schema, name: str, kind: DataType) -> None:
    """Refuse a column that cannot hold values of its attribute."""
    from pyspark.sql.types import ArrayType

    domain = schema.attributes[name]
    # One value and a list of one are the same; the number of values is checked event by event.
    inner = kind.elementType if isinstance(kind, ArrayType) else kind
    stem = inner.simpleString().split("(")[0].split(" ")[0].split("<")[0]
    fitting = _FITTING.get(type(domain))
    if fitting is None or stem in fitting or stem == "void":
        return
    several = any(name in uses and uses[name].multiple for uses in schema.event_types.values())
    expected = f"{', '.join(fitting[:-1])} or {fitting[-1]}" if len(fitting) > 1 else fitting[0]
    raise SparkError(
        f"the column {name!r} is {kind.simpleString()}, but the attribute is {domain.kind}: "
        f"expected {'an array of ' if several else ''}{expected}"
    )


def _check_parents(schema: Schema, found: Collection[str], strange: Mapping[str, DataType]) -> None:
    """Refuse a column that should be a struct of attributes: no event would have them."""
    for name, kind in strange.items():
        below = [
            each for each in schema.attributes if each.startswith(f"{name}.") and each not in found
        ]
        if below and kind.simpleString() != "void":  # which is nothing but nulls
            raise SparkError(
                f"the column {name!r} is {kind.simpleString()}, but {below[0]!r} is an attribute: "
                f"expected a struct that has the field {below[0].removeprefix(f'{name}.')!r}; or, "
                "if it is meant to be something else, rename it or drop it"
            )


def _check_missing(schema: Schema, found: Collection[str], others: Sequence[str]) -> None:
    default = schema.default_event_type
    named = default is None or EVENT_TYPE in found  # without a column, all are of the default type
    types = [uses for name, uses in schema.event_types.items() if named or name == default]
    needed = [
        name
        for name in schema.attributes
        if all(name in uses and uses[name].mandatory for uses in types)
    ]
    for name in needed if default is not None else [EVENT_TYPE, *needed]:
        if name not in found:
            why = "which says what an event is" if name == EVENT_TYPE else "which every event binds"
            raise SparkError(
                f"there is no column for the attribute {name!r}, {why}{suggestion(name, others)}"
            )
    if not found:
        raise SparkError(
            f"no column is an attribute; the columns are {_some(others)}, and the attributes are "
            + _some([name for name in schema.attributes if name != EVENT_TYPE])
        )


def _check_alike(schema: Schema, found: Collection[str], strange: Sequence[str]) -> None:
    """Refuse a misspelt column: no event would have the attribute."""
    absent = {name.lower(): name for name in schema.attributes if name not in found}
    for name in strange:
        close = difflib.get_close_matches(name.lower(), absent, n=1, cutoff=_SAME)
        if close:
            raise SparkError(
                f"the column {name!r} is not an attribute; did you mean {absent[close[0]]!r}? "
                "Rename it; or, if it is meant to be something else, drop it or keep it"
            )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") or "none"


# -- columns for workers ---------------------------------------------------------------------------


class KeptColumn(NamedTuple):
    """A column that is kept as it is."""

    name: str
    at: int  # its place among the columns that are sent


class SentColumns(NamedTuple):
    """The columns that are sent to workers, each once."""

    frame: DataFrame
    attributes: tuple[tuple[str, Path], ...]  # and their columns
    extras: tuple[KeptColumn, ...]
    struct: StructType  # of the extras


def select_columns(
    frame: DataFrame,
    schema: Schema | None,
    extras: Sequence[str | Column],
    taken: Iterable[str] = (),
) -> SentColumns:
    """Select the attributes of a schema, and extra columns by name or as Column.

    `taken` are names that the result uses for other columns.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    picked = [column_of(frame, extra) for extra in extras]
    struct = frame.select(*picked).schema if picked else StructType([])
    seen = set(taken)
    for name in struct.names:
        if name in seen:
            raise SparkError(f"the result would have two columns {name!r}; rename one of them")
        seen.add(name)
    columns = list(picked)
    places = {
        extra: at for at, extra in enumerate(extras) if isinstance(extra, str)
    }  # a plain column that is an attribute too is sent once
    attributes: list[tuple[str, Path]] = []
    found = [] if schema is None else attribute_sources(schema, frame.schema, struct.names)
    for path in found:
        check_unambiguous(frame, path)
        at = places.get(path[0]) if len(path) == 1 else None
        if at is None:
            at = len(columns)
            columns.append(functions.col(quoted(*path)))
        attributes.append((".".join(path), (f"c{at}",)))
    named = [column.alias(f"c{at}") for at, column in enumerate(columns)]
    places_out = tuple(KeptColumn(name, at) for at, name in enumerate(struct.names))
    return SentColumns(frame.select(*named), tuple(attributes), places_out, struct)


def column_of(frame: DataFrame, given: str | Column) -> Column:
    """A column by its name, or as it is given."""
    from pyspark.sql import Column, functions

    if isinstance(given, Column):
        return given
    if not isinstance(given, str):
        raise SparkError(f"a column is given by its name or as a Column, got {given!r}")
    if given not in frame.columns:
        raise SparkError(f"there is no column {given!r}{suggestion(given, frame.columns)}")
    check_unambiguous(frame, (given,))
    return functions.col(quoted(given))


def moments_of(frame: DataFrame, given: str | Column) -> Column:
    """The moments of events, in microseconds since 1970, from a column of timestamps."""
    from pyspark.sql import functions

    column = column_of(frame, given)
    kind = frame.select(column).schema[0].dataType.simpleString()
    if kind not in ("timestamp", "timestamp_ntz"):
        raise SparkError(f"the column for now is {kind}, expected timestamp")
    if kind == "timestamp_ntz":  # without an offset, a time is UTC
        column = functions.to_utc_timestamp(column.cast("timestamp"), functions.current_timezone())
    return functions.unix_micros(column).alias(_MOMENT)


def check_unambiguous(frame: DataFrame, path: Sequence[str]) -> None:
    """Refuse a column, or a field, whose name Spark cannot tell from another."""
    from pyspark.sql.types import StructType

    struct: DataType = frame.schema
    for part in path:
        if not isinstance(struct, StructType):
            return
        alike = [name for name in struct.names if name.lower() == part.lower()]
        if alike.count(part) > 1:
            raise SparkError(f"two columns are named {part!r}; rename or drop one of them")
        if len(alike) > 1 and not _cased(frame):
            raise SparkError(
                f"the columns {' and '.join(map(repr, alike))} have one name for Spark, which "
                "ignores case; rename or drop one of them, or set "
                "spark.sql.caseSensitive to true"
            )
        struct = struct[part].dataType


def _cased(frame: DataFrame) -> bool:
    return str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"


# -- from a schema to columns ----------------------------------------------------------------------


def struct_of(schema: Schema) -> StructType:
    """The columns of a schema's events: arrays for several values, structs for dots.

    An opaque attribute is text: a string of JSON as it is, any other value as its JSON.
    """
    return _struct(nested(column_types(schema), _struct))


def _struct(kinds: Mapping[str, DataType]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def column_types(schema: Schema) -> dict[str, DataType]:
    """The type of each attribute's column."""
    from pyspark.sql.pandas.types import from_arrow_type

    return {name: from_arrow_type(kind) for name, kind in arrow_types(schema).items()}
