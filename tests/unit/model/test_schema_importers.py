"""Schemas from JSON Schema, Arrow and Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.errors import SchemaError
from tests.running import run_script


def described(schema: Schema) -> dict[str, tuple[Any, str]]:
    """For each attribute its domain and its use."""
    (uses,) = schema.event_types.values()
    assert list(uses) == [name for name in schema.attributes if name != "event_type"]
    return {name: (schema.attributes[name].to_dict(), str(use)) for name, use in uses.items()}


def integer(low: int | None = None, high: int | None = None) -> Any:
    bounds = {k: v for k, v in (("low", low), ("high", high)) if v is not None}
    return {"kind": "integer", **bounds} if bounds else "integer"


def names(*values: str) -> Any:
    return {"kind": "enumerated", "values": list(values)}


# -- JSON Schema ----------------------------------------------------------------------------------

JSON_TYPES: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "integer"}, integer(), "mandatory"),
    ({"type": "integer", "minimum": 0, "maximum": 9}, integer(0, 9), "mandatory"),
    ({"type": "integer", "minimum": 0.0}, integer(0), "mandatory"),
    ({"type": "integer", "minimum": 0, "maximum": 10**400}, integer(0), "mandatory"),
    ({"type": "integer", "minimum": -1.5, "maximum": 1.5}, integer(-1, 1), "mandatory"),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}, integer(1, 8), "mandatory"),
    ({"type": "integer", "exclusiveMinimum": -1.5}, integer(-1), "mandatory"),
    ({"type": "integer", "exclusiveMinimum": 1.5}, integer(2), "mandatory"),
    ({"type": "integer", "exclusiveMaximum": 1.5}, integer(None, 1), "mandatory"),
    ({"type": "integer", "exclusiveMaximum": -1.5}, integer(None, -2), "mandatory"),
    ({"type": "integer", "minimum": 5, "exclusiveMinimum": 2}, integer(5), "mandatory"),
    ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, integer(6), "mandatory"),
    ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, integer(None, 4), "mandatory"),
    ({"type": "integer", "maximum": 5, "exclusiveMaximum": False}, integer(None, 5), "mandatory"),
    ({"type": "integer", "maximum": 10**20}, integer(), "mandatory"),
    ({"type": "number", "minimum": 0}, "decimal", "mandatory"),
    ({"type": "string"}, "text", "mandatory"),
    ({"type": "string", "format": "date-time"}, "timestamp", "mandatory"),
    ({"type": "string", "format": "date"}, "timestamp", "mandatory"),
    ({"type": "string", "format": "email"}, "text", "mandatory"),
    ({"type": "boolean"}, "boolean", "mandatory"),
    ({"type": "object"}, "opaque", "mandatory"),
    ({}, "opaque", "mandatory"),
    ({"enum": ["a", "b"]}, names("a", "b"), "mandatory"),
    ({"type": "string", "enum": ["a", "b", "a"]}, names("a", "b"), "mandatory"),
    ({"enum": ["a", None]}, names("a"), "optional"),
    ({"const": "a"}, names("a"), "mandatory"),
    ({"type": "integer", "enum": [1, 2]}, integer(), "mandatory"),
    ({"enum": [1, "a"]}, "opaque", "mandatory"),
    ({"type": ["string", "null"]}, "text", "optional"),
    ({"type": ["integer", "number"]}, "decimal", "mandatory"),
    ({"type": ["integer", "string"]}, "opaque", "mandatory"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, integer(), "optional"),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "opaque", "mandatory"),
    ({"type": "array", "items": {"type": "string"}}, "text", "mandatory multiple"),
    ({"type": ["array", "null"], "items": {"type": "string"}}, "text", "optional multiple"),
    ({"type": "array", "items": {"type": ["integer", "null"]}}, integer(), "mandatory multiple"),
    ({"type": "array"}, "opaque", "mandatory multiple"),
    ({"type": "array", "items": {"type": "array"}}, "opaque", "mandatory multiple"),
    (
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"kind": "structs", "attributes": {"a": "text"}},
        "mandatory multiple",
    ),
    ({"$ref": "#/$defs/money"}, "decimal", "mandatory"),
    ({"$ref": "#/$defs/maybe"}, "decimal", "optional"),
    ({"$ref": "#/$defs/a~1b~0c"}, "boolean", "mandatory"),
    ({"type": "array", "items": {"$ref": "#/$defs/money"}}, "decimal", "mandatory multiple"),
]
DEFINITIONS = {
    "money": {"type": "number"},
    "maybe": {"anyOf": [{"$ref": "#/$defs/money"}, {"type": "null"}]},
    "a/b~c": {"type": "boolean"},
    "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
    "loop": {"$ref": "#/$defs/loop"},
}


@pytest.mark.parametrize(("spec", "domain", "use"), JSON_TYPES)
def test_a_json_schema_property_becomes(spec: dict[str, Any], domain: Any, use: str) -> None:
    document = {"properties": {"x": spec}, "required": ["x"], "$defs": DEFINITIONS}
    assert described(Schema.from_json_schema(document)) == {"x": (domain, use)}
    del document["required"]
    assert described(Schema.from_json_schema(document))["x"][1].startswith("optional")


def test_nested_objects_become_dotted_attributes() -> None:
    document = {
        "title": "offer",
        "type": "object",
        "required": ["seller", "event_type"],
        "properties": {
            "event_type": {"type": "string"},
            "seller": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "address": {
                        "type": ["object", "null"],
                        "required": ["city"],
                        "properties": {"city": {"type": "string"}},
                    },
                },
            },
            "shop": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            },
        },
    }
    schema = Schema.from_json_schema(document)
    assert list(schema.event_types) == ["offer"]
    assert described(schema) == {
        "seller.name": ("text", "mandatory"),
        "seller.address.city": ("text", "optional"),
        "shop.name": ("text", "optional"),
    }
    assert list(Schema.from_json_schema(document, "sale").event_types) == ["sale"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "expected an object with 'properties'"),
        ({}, "expected an object with 'properties'"),
        ({"properties": [1]}, "expected an object with 'properties'"),
        ({"properties": {"x": 5}}, "expected an object"),
        ({"properties": {"x": {"anyOf": [True, {"type": "null"}]}}}, "expected an object"),
        ({"properties": {"x": {"anyOf": 5}}}, "expected a list"),
        ({"properties": {}, "required": True}, "'required' must be a list"),
        ({"properties": {"x": {"type": "integer", "minimum": "a"}}}, "minimum must be a number"),
        ({"properties": {"x": {"$ref": "\ud800"}}}, r"the reference '\\ud800' leads out"),
        ({"properties": {"x": {"type": "integer", "maximum": True}}}, "maximum must be a number"),
        ({"properties": {"x": {"type": "integer", "maximum": float("inf")}}}, "must be a number"),
        ({"properties": {"x": {"type": "integer", "minimum": 5, "maximum": 4}}}, "above high"),
        ({"properties": {"x": {"$ref": "#/$defs/none"}}}, "nothing at"),
        ({"properties": {"x": {"$ref": "http://x/y"}}}, "leads out of the document"),
        ({"properties": {"x": {"$ref": "#/$defs/loop"}}, "$defs": DEFINITIONS}, "form a cycle"),
        ({"properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": DEFINITIONS}, "nested deeper"),
        (
            {
                "properties": {
                    "a.b": {"type": "string"},
                    "a": {"type": "object", "properties": {"b": {"type": "string"}}},
                }
            },
            "two columns give",
        ),
    ],
)
def test_a_json_schema_that_cannot_be_read_is_refused(document: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_json_schema(document)


# -- Arrow ----------------------------------------------------------------------------------------

ARROW_TYPES: list[tuple[pa.DataType, Any]] = [
    (pa.int8(), integer(-128, 127)),
    (pa.int16(), integer(-(2**15), 2**15 - 1)),
    (pa.int32(), integer(-(2**31), 2**31 - 1)),
    (pa.int64(), integer()),
    (pa.uint8(), integer(0, 255)),
    (pa.uint32(), integer(0, 2**32 - 1)),
    (pa.uint64(), integer(0, 2**63 - 1)),
    (pa.float16(), "decimal"),
    (pa.float32(), "decimal"),
    (pa.float64(), "decimal"),
    (pa.decimal128(10, 2), "decimal"),
    (pa.decimal256(50, 2), "decimal"),
    (pa.bool_(), "boolean"),
    (pa.string(), "text"),
    (pa.large_string(), "text"),
    (pa.string_view(), "text"),
    (pa.timestamp("ns", "UTC"), "timestamp"),
    (pa.date32(), "timestamp"),
    (pa.date64(), "timestamp"),
    (pa.time64("us"), "opaque"),
    (pa.duration("s"), "opaque"),
    (pa.binary(), "opaque"),
    (pa.map_(pa.string(), pa.int64()), "opaque"),
    (pa.dictionary(pa.int8(), pa.string()), "text"),
    (pa.dictionary(pa.int8(), pa.int16()), integer(-(2**15), 2**15 - 1)),
]


@pytest.mark.parametrize(("kind", "domain"), ARROW_TYPES)
def test_an_arrow_field_becomes(kind: pa.DataType, domain: Any) -> None:
    fields = [
        pa.field("x", kind),
        pa.field("needed", kind, nullable=False),
        pa.field("many", pa.list_(kind)),
        pa.field("large", pa.large_list(kind), nullable=False),
        pa.field("fixed", pa.list_(kind, 2)),
    ]
    assert described(Schema.from_arrow(pa.schema(fields))) == {
        "x": (domain, "optional"),
        "needed": (domain, "mandatory"),
        "many": (domain, "optional multiple"),
        "large": (domain, "mandatory multiple"),
        "fixed": (domain, "optional multiple"),
    }


def test_arrow_structs_become_dotted_attributes() -> None:
    address = pa.struct([pa.field("city", pa.string(), nullable=False)])
    seller = pa.struct([pa.field("name", pa.string(), nullable=False), ("address", address)])
    schema = pa.schema(
        [
            pa.field("seller", seller, nullable=False),
            ("offers", pa.list_(seller)),
            ("event_type", pa.string()),
        ]
    )
    assert described(Schema.from_arrow(schema, "sale")) == {
        "seller.name": ("text", "mandatory"),
        "seller.address.city": ("text", "optional"),
        "offers": (
            {"kind": "structs", "attributes": {"name": "text", "address.city": "text"}},
            "optional multiple",
        ),
    }


def test_names_of_arrow_fields_that_are_not_utf8_are_refused() -> None:
    whole = pa.schema([("naXme", pa.int64())]).serialize().to_pybytes()
    damaged = pa.ipc.read_schema(pa.py_buffer(whole.replace(b"naXme", b"na\xffme")))
    with pytest.raises(SchemaError, match="not UTF-8"):
        Schema.from_arrow(damaged)


def test_names_that_a_schema_cannot_hold_are_refused_by_every_importer() -> None:
    with pytest.raises(SchemaError, match="two columns give the attribute 'x'"):
        Schema.from_arrow(pa.schema([("x", pa.int64()), ("x", pa.string())]))
    spark = {"type": "struct", "fields": [{"name": "a`b", "type": "long"}]}
    importers: list[tuple[Callable[[Any], Schema], Any]] = [
        (Schema.from_arrow, pa.schema([("a`b", pa.int64())])),
        (Schema.from_json_schema, {"properties": {"a`b": {}}}),
        (Schema.from_spark, spark),
    ]
    for read, document in importers:
        with pytest.raises(SchemaError, match="backquote"):
            read(document)


# -- Spark ----------------------------------------------------------------------------------------


def test_a_spark_struct_becomes_a_schema_in_each_of_its_forms() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    array, field, struct = types.ArrayType, types.StructField, types.StructType
    long, text = types.LongType(), types.StringType()
    rating, x = struct([field("rating", long, nullable=False)]), struct([field("x", long)])
    # column, its type, the domain of its attribute, and how events use it
    columns: list[tuple[Any, ...]] = [
        ("byte", types.ByteType(), integer(-128, 127), "optional"),
        ("short", types.ShortType(), integer(-(2**15), 2**15 - 1), "optional"),
        ("int", types.IntegerType(), integer(-(2**31), 2**31 - 1), "mandatory"),
        ("long", long, integer(), "optional"),
        ("float", types.FloatType(), "decimal", "optional"),
        ("double", types.DoubleType(), "decimal", "optional"),
        ("decimal", types.DecimalType(20, 2), "decimal", "optional"),
        ("string", text, "text", "optional"),
        ("char", types.CharType(3), "text", "optional"),
        ("varchar", types.VarcharType(3), "text", "optional"),
        ("boolean", types.BooleanType(), "boolean", "optional"),
        ("timestamp", types.TimestampType(), "timestamp", "optional"),
        ("ntz", types.TimestampNTZType(), "timestamp", "optional"),
        ("date", types.DateType(), "timestamp", "optional"),
        ("binary", types.BinaryType(), "opaque", "optional"),
        ("interval", types.DayTimeIntervalType(), "opaque", "optional"),
        ("map", types.MapType(text, long), "opaque", "optional"),
        ("tags", array(text), "text", "mandatory multiple"),
        ("grid", array(array(long)), "opaque", "optional multiple"),
        ("seller", rating, integer(), "mandatory"),
        (
            "offers",
            array(x),
            {"kind": "structs", "attributes": {"x": "integer"}},
            "optional multiple",
        ),
    ]
    fields = [field(name, kind, "optional" in use) for name, kind, _, use in columns]
    given = struct([*fields, field("event_type", text)])
    schema = Schema.from_spark(given, "sale")
    assert described(schema) == {
        "seller.rating" if name == "seller" else name: (domain, use)
        for name, _, domain, use in columns
    }
    assert Schema.from_spark(given.json(), "sale") == schema
    assert Schema.from_spark(json.loads(given.json()), "sale") == schema


def test_importing_a_spark_schema_needs_no_pyspark() -> None:
    run_script("""
        import sys
        sys.modules["pyspark"] = None
        from tamis import Schema
        made = Schema.from_spark('{"type": "struct", "fields": [{"name": "x", "type": "long"}]}')
        assert list(made.attributes) == ["event_type", "x"]
        assert not [name for name in sys.modules if name.split(".")[0] in ("numba", "duckdb")]
    """)


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        5,
        {"type": "array"},
        {"type": "struct"},
        {"type": "struct", "fields": 5},
        {"type": "struct", "fields": [5]},
        {"type": "struct", "fields": [{"name": "x"}]},
    ],
)
def test_a_malformed_spark_schema_is_refused(document: Any) -> None:
    with pytest.raises(SchemaError, match="Spark schema"):
        Schema.from_spark(document)


def test_arrays_of_objects_become_lists_of_structs() -> None:
    line = {
        "type": "object",
        "required": ["sku"],
        "properties": {
            "sku": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "made": {"type": "object", "properties": {"year": {"type": "integer"}}},
            "event_type": {"type": "string"},  # just a name in an element
            "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {}}}},
            "inner": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        },
    }
    document = {
        "$defs": {"line": line},
        "required": ["lines"],
        "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    }
    schema = Schema.from_json_schema(document)
    structs = {
        "kind": "structs",
        "attributes": {
            "sku": "text",
            "tags": "text",
            "made.year": "integer",
            "parts": {"kind": "structs", "attributes": {"n": "opaque"}},
            "inner": "opaque",  # a line within lines within lines … has no end
        },
        "multiple": ["tags", "parts", "inner"],
    }
    assert described(schema) == {"lines": (structs, "mandatory multiple")}
    kind = pa.list_(pa.struct([("sku", pa.string()), ("tags", pa.list_(pa.string()))]))
    for again in (Schema.from_arrow(pa.schema([("lines", kind)])), schema):
        engine = Engine(again)
        engine.subscribe("some l in lines (l.sku = A1 and l.tags = red)", id=1)
        assert engine.match({"lines": [{"sku": "A1", "tags": ["old", "red"]}]}) == [1]
        assert engine.match({"lines": [{"sku": "A1"}, {"sku": "B2", "tags": ["red"]}]}) == []


def test_lists_nested_without_end_are_opaque_at_last() -> None:
    kind: Any = pa.struct([("n", pa.int64())])
    for _ in range(12):
        kind = pa.struct([("in", pa.list_(kind))])
    schema = Schema.from_arrow(pa.schema([("in", pa.list_(kind))]))
    text = str(schema.to_dict())
    assert text.count("structs") == 8
    assert text.count("opaque") == 1
    assert Schema.from_dict(schema.to_dict()) == schema
