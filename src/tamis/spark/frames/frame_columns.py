"""Which columns of a DataFrame are which attributes, checked before anything runs.

A task that fails an hour into a job says little and says it late. What can be known from the types
of the columns alone is known here: a missing column, one of a wrong type, one whose name is almost
that of an attribute.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import SparkError, nearest
from tamis.model.domain import Boolean, Decimal, Domain, Integer, Text, Timestamp
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.schema import EVENT_TYPE, Schema
from tamis.replay.event_columns import multiple

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
}
_SAME = 0.8  # alike enough for a slip of the pen; `ts` and `tags` are not


class Source(NamedTuple):
    """Where the values of an attribute are: a column, or a field of a struct in one."""

    attribute: str
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name that Spark resolves."""
        return quoted(*self.path)


def quoted(*path: str) -> str:
    """The name of a column, or of a field in one, that Spark takes for nothing else."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)


def sources(schema: Schema, struct: StructType, known: Iterable[str] = ()) -> list[Source]:
    """The source of each attribute that a DataFrame has, in the order of its columns.

    A `SparkError` where one that every event has to bind is missing, where a column cannot hold
    values of its attribute, or no fields that are attributes, and where a column that is neither
    an attribute nor `known` otherwise is named almost like an attribute that has no column. Other
    columns are left alone.
    """
    found: dict[str, Source] = {}
    others: dict[str, DataType] = {}
    for path, kind in _leaves(struct, schema):
        name = ".".join(path)
        if name not in schema.attributes:
            others[name] = kind
            continue
        if name in found:
            raise SparkError(f"two columns give the attribute {name!r}; drop one of them")
        _check(schema, name, kind)
        found[name] = Source(name, path)
    exempt = set(known)
    strange = {name: kind for name, kind in others.items() if name not in exempt}
    _check_parents(schema, found, strange)
    _check_missing(schema, found, list(others))
    _check_alike(schema, found, list(strange))
    return list(found.values())


def _leaves(
    struct: StructType, schema: Schema, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Columns, and what is in those that are structs; but an opaque attribute may be a struct."""
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
    # One value and a list of one are the same; how many there are is seen event by event.
    inner = kind.elementType if isinstance(kind, ArrayType) else kind
    stem = inner.simpleString().split("(")[0].split(" ")[0]
    fitting = _FITTING.get(type(domain))
    if fitting is None or stem in fitting or stem == "void":
        return
    several = any(name in uses and uses[name].multiple for uses in schema.event_types.values())
    expected = f"{', '.join(fitting[:-1])} or {fitting[-1]}" if len(fitting) > 1 else fitting[0]
    raise SparkError(
        f"the column {name!r} is {kind.simpleString()}, but the attribute is {domain.kind}: "
        f"expected {'an array of ' if several else ''}{expected}"
    )


def _check_parents(
    schema: Schema, found: dict[str, Source], strange: Mapping[str, DataType]
) -> None:
    """Refuse what should hold attributes and cannot: they would be absent from every event."""
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


def _check_missing(schema: Schema, found: dict[str, Source], others: Sequence[str]) -> None:
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
            hint = nearest(name, others)
            why = "which says what an event is" if name == EVENT_TYPE else "which every event binds"
            raise SparkError(
                f"there is no column for the attribute {name!r}, {why}"
                + (f"; {hint}" if hint else "")
            )
    if not found:
        raise SparkError(
            f"no column is an attribute; the columns are {_some(others)}, and the attributes are "
            + _some([name for name in schema.attributes if name != EVENT_TYPE])
        )


def _check_alike(schema: Schema, found: dict[str, Source], strange: Sequence[str]) -> None:
    """Refuse a slip of the pen, by which an attribute would be absent from every event."""
    absent = {name.lower(): name for name in schema.attributes if name not in found}
    for name in strange:
        close = difflib.get_close_matches(name.lower(), absent, n=1, cutoff=_SAME)
        if close:
            raise SparkError(
                f"the column {name!r} is no attribute; did you mean {absent[close[0]]!r}? Rename "
                "it; or, if it is meant to be something else, drop it or keep it"
            )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") or "none"


# -- what is sent to workers -----------------------------------------------------------------------


class Extra(NamedTuple):
    """A column that is handed on as it is."""

    name: str
    at: int  # its place among the columns that are sent


class Sent(NamedTuple):
    """What is sent to a worker: each column once, whatever it is needed for."""

    frame: DataFrame
    attributes: tuple[tuple[str, int], ...]  # and their places
    extras: tuple[Extra, ...]
    struct: StructType  # of the extras


def sent(
    frame: DataFrame,
    schema: Schema | None,
    extras: Sequence[str | Column],
    taken: Iterable[str] = (),
) -> Sent:
    """Select what is needed: the attributes of a schema, and extra columns by name or as Column.

    `taken` are names of columns that the result has besides.
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
    attributes: list[tuple[str, int]] = []
    for source in sources(schema, frame.schema, struct.names) if schema is not None else ():
        check_told_apart(frame, source.path)
        at = places.get(source.path[0]) if len(source.path) == 1 else None
        if at is None:
            at = len(columns)
            columns.append(functions.col(source.name))
        attributes.append((source.attribute, at))
    named = [column.alias(f"c{at}") for at, column in enumerate(columns)]
    places_out = tuple(Extra(name, at) for at, name in enumerate(struct.names))
    return Sent(frame.select(*named), tuple(attributes), places_out, struct)


def column_of(frame: DataFrame, given: str | Column) -> Column:
    """A column by its name, or as it is given."""
    from pyspark.sql import Column, functions

    if isinstance(given, Column):
        return given
    if not isinstance(given, str):
        raise SparkError(f"a column is given by its name or as a Column, got {given!r}")
    if given not in frame.columns:
        hint = nearest(given, frame.columns)
        raise SparkError(f"there is no column {given!r}" + (f"; {hint}" if hint else ""))
    check_told_apart(frame, (given,))
    return functions.col(quoted(given))


def check_told_apart(frame: DataFrame, path: Sequence[str]) -> None:
    """Refuse a column, or a field in one, whose name another has too, as Spark reads names."""
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
                f"the columns {' and '.join(map(repr, alike))} have one name for Spark, to which "
                "capitals and small letters are the same; rename or drop one of them, or set "
                "spark.sql.caseSensitive to true"
            )
        struct = struct[part].dataType


def _cased(frame: DataFrame) -> bool:
    return str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"


# -- from a schema to columns ----------------------------------------------------------------------


def struct_of(schema: Schema) -> StructType:
    """The columns that hold events of a schema: arrays for several values, structs for dots.

    An opaque attribute is text: what JSON calls a string as it is, anything else as its JSON.
    """
    tree: dict[str, Any] = {}
    for name, kind in column_types(schema).items():
        *above, last = name.split(".")
        place = tree
        for part in above:
            place = place.setdefault(part, {})
        place[last] = kind
    return _struct(tree)


def column_types(schema: Schema) -> dict[str, DataType]:
    """The type of each attribute's column."""
    from pyspark.sql import types

    kinds: dict[type[Domain], DataType] = {
        Integer: types.LongType(),
        Decimal: types.DoubleType(),
        Boolean: types.BooleanType(),
        Timestamp: types.TimestampType(),
    }
    several = multiple(schema)
    found: dict[str, DataType] = {}
    for name, domain in schema.attributes.items():
        kind = kinds.get(type(domain), types.StringType())
        found[name] = types.ArrayType(kind) if name in several else kind
    return found


def _struct(tree: dict[str, Any]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(name, _struct(kind) if isinstance(kind, dict) else kind)
            for name, kind in tree.items()
        ]
    )
