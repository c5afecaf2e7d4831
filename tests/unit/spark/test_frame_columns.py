"""Columns are checked by their types alone, before anything runs; no JVM is needed for that."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from tamis import Schema
from tamis.errors import SparkError
from tamis.spark.frames.frame_columns import attribute_sources, quoted, struct_of
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type(
        "offer",
        {
            "price": "decimal!",
            "n": {"kind": "integer", "low": 0},
            "title": "text",
            "colour": {"kind": "enumerated", "values": ["red", "green"]},
            "sold": "boolean",
            "at": "timestamp",
            "tags": "text*",
            "seller.rating": "integer",
            "photo": "opaque",
        },
    )
)
TWO = Schema.from_dict(
    {
        "attributes": {"n": "integer", "m": "integer"},
        "event_types": {"a": {"n": "mandatory"}, "b": {"m": "mandatory"}},
    }
)


Kind = str | list[Any] | dict[str, Any]


def struct(columns: dict[str, Any]) -> StructType:
    """Columns by their types: a list for an array, a mapping for a struct."""
    fields = [
        {"name": name, "type": written(kind), "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def written(kind: Kind) -> Any:
    if isinstance(kind, list):
        return {"type": "array", "elementType": written(kind[0]), "containsNull": True}
    return struct(kind).jsonValue() if isinstance(kind, dict) else kind


def found(
    columns: dict[str, Any], schema: Schema = SCHEMA, known: tuple[str, ...] = ()
) -> dict[str, str]:
    paths = attribute_sources(schema, struct(columns), known)
    return {".".join(path): quoted(*path) for path in paths}


def test_columns_and_fields_of_structs() -> None:
    nested = {
        "price": "double",
        "seller": {"rating": "integer", "name": "string"},
        "topic": "string",
    }
    assert found(nested) == {"price": "`price`", "seller.rating": "`seller`.`rating`"}
    assert found({"price": "double", "seller.rating": "integer"}) == {
        "price": "`price`",
        "seller.rating": "`seller.rating`",
    }
    assert quoted("a`b") == "`a``b`"


def test_an_opaque_attribute_may_be_a_struct() -> None:
    assert "photo" in found({"price": "double", "photo": {"w": "integer", "h": "integer"}})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[("price", kind) for kind in ("float", "integer", "decimal(10,2)", "byte")],
        *[("n", kind) for kind in ("long", "double", "short")],
        *[("title", kind) for kind in ("string", "varchar(10)", "void", ["string"])],
        *[("at", kind) for kind in ("timestamp", "timestamp_ntz", "date", "string")],
        *[("tags", kind) for kind in ("string", ["string"])],
        *[("photo", kind) for kind in ("binary", "string", ["integer"])],
        ("colour", "string"),
        ("sold", "boolean"),
    ],
)
def test_types_that_fit(name: str, kind: Kind) -> None:
    assert name in found({"price": "double"} | {name: kind})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"n": "string"}, "'n' is string, but the attribute is integer: expected tinyint"),
        ({"title": "integer"}, "'title' is int, but the attribute is text: expected string"),
        ({"sold": "integer"}, "'sold' is int, but the attribute is boolean: expected boolean"),
        ({"at": "long"}, "'at' is bigint, but the attribute is timestamp: expected timestamp"),
        ({"tags": ["integer"]}, "'tags' is array<int>, .* expected an array of string"),
        ({"n": {"x": "integer"}}, "'n' is struct<x:int>"),
        ({"seller.rating": "long", "seller": {"rating": "long"}}, "two columns give the attribute"),
        ({"titel": "string"}, "'titel' is not an attribute; did you mean 'title'"),
        ({"Title": "string"}, "'Title' is not an attribute; did you mean 'title'"),
        ({"seller": "string"}, "'seller' is string, but 'seller.rating' is an attribute: expected"),
        ({"seller": [{"rating": "long"}]}, "'seller' is array<struct<rating:bigint>>, but 'sel"),
        ({"seller": {"ratin": "long"}}, "'seller.ratin' is not an attribute; .* 'seller.rating'"),
    ],
)
def test_types_and_names_that_do_not(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SparkError, match=message):
        found({"price": "double"} | columns)


def test_a_column_that_is_known_may_be_named_almost_like_an_attribute() -> None:
    given = {"price": "double", "titel": "string"}
    assert found(given, known=("titel",)) == {"price": "`price`"}
    assert found(given | {"title": "string"})  # it has its own column


def test_a_column_beside_an_attribute_with_a_dot() -> None:
    """`seller` holds no rating, but nobody looks for one there."""
    given = {"price": "double", "seller": "string"}
    assert found(given, known=("seller",)) == {"price": "`price`"}
    assert found(given | {"seller.rating": "long"})
    assert found(given | {"seller": "void"})


def test_what_every_event_binds_has_to_be_there() -> None:
    with pytest.raises(SparkError, match="'price', which every event binds; did you mean 'prise'"):
        found({"prise": "double", "n": "long"})
    with pytest.raises(SparkError, match="attribute 'event_type', which says what an event is"):
        found({"n": "long", "m": "long"}, TWO)
    assert found({"event_type": "string", "n": "long"}, TWO)  # some events are of the other type
    default = Schema.from_dict({**TWO.to_dict(), "default_event_type": "b"})
    assert found({"m": "long"}, default)  # all events are of the default type
    with pytest.raises(SparkError, match="'m', which every event binds"):
        found({"n": "long"}, default)
    assert found({"event_type": "string", "n": "long"}, default)
    optional = Schema.from_dict(one_type("e", {"x": "integer"}))
    with pytest.raises(SparkError, match="no column is an attribute; the columns are k, v"):
        found({"k": "long", "v": "long"}, optional)


def test_the_columns_of_a_schema() -> None:
    assert struct_of(SCHEMA).simpleString() == (
        "struct<event_type:string,price:double,n:bigint,title:string,colour:string,sold:boolean,"
        "at:timestamp,tags:array<string>,seller:struct<rating:bigint>,photo:string>"
    )
    assert struct_of(TWO)["event_type"].dataType.simpleString() == "array<string>"
    assert [".".join(path) for path in attribute_sources(SCHEMA, struct_of(SCHEMA))] == list(
        SCHEMA.attributes
    )
