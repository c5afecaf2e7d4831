"""Importers: schemas from JSON Schema, Arrow and Spark.

Each importer creates one event type, which is the default. Required (not nullable) becomes
mandatory, an array becomes multiple, a nested object becomes dotted attributes (`seller.rating`),
and an array of objects becomes a list of structs. Every other type becomes opaque, and so does an
array of objects within one of its own kind, as in a tree. Unknown attributes of events are ignored,
unless a JSON Schema says `additionalProperties: false`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tamis.errors import SchemaError
from tamis.model.domain import INT_HIGH, INT_LOW, Domain, Integer
from tamis.model.elements.structs import NESTING, Structs
from tamis.model.named_domains import Enumerated
from tamis.model.schema import BUILT_IN, EVENT_TYPE, IGNORE, REFUSE, Schema, Use

_NESTING = 32


class _ImportedAttribute(NamedTuple):
    name: str
    domain: Domain
    use: Use


def _schema(found: Iterator[_ImportedAttribute], name: str, unknown: str = IGNORE) -> Schema:
    attributes: dict[str, Domain] = {}
    uses: dict[str, Use] = {}
    for attribute, domain, use in found:
        if attribute == EVENT_TYPE:  # every schema has it
            continue
        if attribute in attributes:
            raise SchemaError(f"two columns give the attribute {attribute!r}")
        attributes[attribute] = domain
        uses[attribute] = use
    return Schema({}, attributes, {name: uses}, unknown=unknown)


def _structs(found: Iterator[_ImportedAttribute]) -> Domain:
    """The domain of an array of objects with these attributes; opaque if they have none."""
    fields = {each.name: each for each in found if each.name != EVENT_TYPE}
    attributes = {name: each.domain for name, each in fields.items()}
    several = [name for name, each in fields.items() if each.use.multiple]
    return Structs(attributes, several) if attributes else BUILT_IN["opaque"]


# -- JSON Schema ----------------------------------------------------------------------------------


def from_json_schema(document: Mapping[str, Any], name: str | None = None) -> Schema:
    """One event type from a JSON Schema of type object."""
    if not isinstance(document, Mapping) or not isinstance(document.get("properties"), Mapping):
        raise SchemaError("JSON Schema: expected an object with 'properties'")
    title = name or document.get("title") or "event"
    closed = document.get("additionalProperties") is False
    found = _json_object(document, document, "", True, 0, (id(document["properties"]),))
    return _schema(found, str(title), REFUSE if closed else IGNORE)


def _json_object(
    spec: Mapping[str, Any],
    root: Mapping[str, Any],
    prefix: str,
    mandatory: bool,
    depth: int,
    above: tuple[int, ...],
) -> Iterator[_ImportedAttribute]:
    """The attributes of an object; `above` are the objects whose arrays it is in."""
    if depth > _NESTING:
        raise SchemaError(f"JSON Schema: nested deeper than {_NESTING} levels at {prefix!r}")
    required = spec.get("required", ())
    if not isinstance(required, (list, tuple)):
        raise SchemaError(f"JSON Schema: 'required' must be a list of names, got {required!r}")
    for key, given in spec["properties"].items():
        name = f"{prefix}{key}"
        inner, nullable = _json_resolve(given, root, name)
        needed = mandatory and key in required and not nullable
        multiple = False
        if inner.get("type") == "array":
            items = inner.get("items")
            multiple = True
            inner, _ = _json_resolve(items if isinstance(items, Mapping) else {}, root, name)
        nested = inner.get("type") == "object" and isinstance(inner.get("properties"), Mapping)
        nested = nested and len(inner["properties"]) > 0
        known = id(inner["properties"]) if nested else 0
        if nested and not multiple:
            yield from _json_object(inner, root, f"{name}.", needed, depth + 1, above)
        elif nested and known not in above and len(above) <= NESTING:
            fields = _json_object(inner, root, "", False, depth + 1, (*above, known))
            yield _ImportedAttribute(name, _structs(fields), Use(needed, True))
        else:
            yield _ImportedAttribute(name, _json_domain(inner, name), Use(needed, multiple))


def _json_resolve(spec: Any, root: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], bool]:
    """Follow references within the document; unwrap unions with null."""
    nullable = False
    for _ in range(_NESTING):
        if not isinstance(spec, Mapping):
            raise SchemaError(f"JSON Schema: {name!r}: expected an object, got {spec!r}")
        if "$ref" in spec:
            spec = _json_pointer(root, str(spec["$ref"]), name)
            continue
        options = spec.get("anyOf") or spec.get("oneOf")
        if options:
            if not isinstance(options, (list, tuple)):
                raise SchemaError(f"JSON Schema: {name!r}: expected a list, got {options!r}")
            rest = [o for o in options if not isinstance(o, Mapping) or o.get("type") != "null"]
            nullable = nullable or len(rest) < len(options)
            if len(rest) != 1:
                return {}, nullable  # a real union: opaque
            spec = rest[0]
            continue
        kinds = spec.get("type")
        if isinstance(kinds, list):
            rest = [kind for kind in kinds if kind != "null"]
            nullable = nullable or len(rest) < len(kinds)
            if sorted(map(str, rest)) == ["integer", "number"]:
                rest = ["number"]
            spec = {**spec, "type": rest[0]} if len(rest) == 1 else {}
        values = spec.get("enum")
        return spec, nullable or (isinstance(values, (list, tuple)) and None in values)
    raise SchemaError(f"JSON Schema: {name!r}: references form a cycle")


def _json_pointer(root: Mapping[str, Any], pointer: str, name: str) -> Any:
    if not pointer.startswith("#"):
        raise SchemaError(
            f"JSON Schema: {name!r}: the reference {pointer!r} leads out of the document"
        )
    here: Any = root
    for written in pointer[1:].strip("/").split("/"):
        step = written.replace("~1", "/").replace("~0", "~")
        if step and not (isinstance(here, Mapping) and step in here):
            raise SchemaError(f"JSON Schema: {name!r}: nothing at {pointer}")
        here = here[step] if step else here
    return here


def _json_domain(spec: Mapping[str, Any], name: str) -> Domain:
    values = spec.get("enum", [spec["const"]] if "const" in spec else None)
    if isinstance(values, (list, tuple)):
        texts = [value for value in values if value is not None]
        if texts and all(isinstance(value, str) and value for value in texts):
            return Enumerated(dict.fromkeys(texts))
    kind = spec.get("type")
    if kind == "integer":
        return _json_integer(spec, name)
    if kind == "string":
        timed = spec.get("format") in ("date-time", "date")
        return BUILT_IN["timestamp" if timed else "text"]
    return BUILT_IN[{"number": "decimal", "boolean": "boolean"}.get(str(kind), "opaque")]


def _json_integer(spec: Mapping[str, Any], name: str) -> Integer:
    """Bounds are rounded inwards: for integers, above -1.5 means from -1."""
    low, high = _json_bound(spec, "minimum", name), _json_bound(spec, "maximum", name)
    above = _json_bound(spec, "exclusiveMinimum", name)
    below = _json_bound(spec, "exclusiveMaximum", name)
    lows = [] if low is None else [math.ceil(low) + (spec.get("exclusiveMinimum") is True)]
    lows += [] if above is None else [math.floor(above) + 1]
    highs = [] if high is None else [math.floor(high) - (spec.get("exclusiveMaximum") is True)]
    highs += [] if below is None else [math.ceil(below) - 1]
    # A bound beyond 64-bit integers has no effect.
    least, most = max(lows, default=INT_LOW), min(highs, default=INT_HIGH)
    return Integer(least if least > INT_LOW else None, most if most < INT_HIGH else None)


def _json_bound(spec: Mapping[str, Any], key: str, name: str) -> int | float | None:
    bound: object = spec.get(key)
    if bound is None or (isinstance(bound, bool) and key.startswith("exclusive")):
        return None  # up to draft 4, a boolean qualifies the other bound
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound  # of any size
    if isinstance(bound, float) and math.isfinite(bound):
        return bound
    raise SchemaError(f"JSON Schema: {name!r}: {key} must be a number, got {bound!r}")


# -- Arrow ----------------------------------------------------------------------------------------


def from_arrow(schema: Any, name: str) -> Schema:
    """One event type from a pyarrow schema, or from the schema of a table."""
    schema = getattr(schema, "schema", schema)
    if not hasattr(schema, "field"):
        raise SchemaError(f"expected a pyarrow schema, got {type(schema).__name__}")
    try:
        return _schema(_arrow_fields(schema, "", True, 0, 0), name)
    except UnicodeDecodeError as why:
        raise SchemaError(f"Arrow schema: the name of a field is not UTF-8 text: {why}") from None


def _arrow_fields(
    fields: Any, prefix: str, mandatory: bool, depth: int, lists: int
) -> Iterator[_ImportedAttribute]:
    """The attributes of fields; they are in so many lists of structs."""
    from pyarrow import types

    if depth > _NESTING:
        raise SchemaError(f"Arrow schema: nested deeper than {_NESTING} levels at {prefix!r}")
    for field in fields:
        name, kind = f"{prefix}{field.name}", field.type
        needed = mandatory and not field.nullable
        if types.is_struct(kind):
            inner = [kind.field(i) for i in range(kind.num_fields)]
            yield from _arrow_fields(inner, f"{name}.", needed, depth + 1, lists)
            continue
        multiple = (
            types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        )
        kind = kind.value_type if multiple else kind
        if types.is_struct(kind) and lists < NESTING:
            inner = [kind.field(i) for i in range(kind.num_fields)]
            domain = _structs(_arrow_fields(inner, "", False, depth + 1, lists + 1))
        else:
            domain = _arrow_domain(kind)
        yield _ImportedAttribute(name, domain, Use(needed, multiple))


def _arrow_domain(kind: Any) -> Domain:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _arrow_domain(kind.value_type)
    if types.is_integer(kind):
        if types.is_int64(kind):
            return BUILT_IN["integer"]
        if types.is_signed_integer(kind):
            return Integer(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        return Integer(0, min(2**kind.bit_width - 1, INT_HIGH))
    tests = (
        (types.is_floating, "decimal"),
        (types.is_decimal, "decimal"),
        (types.is_boolean, "boolean"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_string_view, "text"),
        (types.is_timestamp, "timestamp"),
        (types.is_date, "timestamp"),
    )
    return BUILT_IN[next((name for test, name in tests if test(kind)), "opaque")]


# -- Spark ----------------------------------------------------------------------------------------


def from_spark(struct: Any, name: str) -> Schema:
    """One event type from a StructType (or its JSON), without importing pyspark."""
    if isinstance(struct, str):
        try:
            struct = json.loads(struct)
        except (ValueError, RecursionError) as why:
            raise SchemaError(f"Spark schema: not valid JSON: {why}") from None
    document = struct.jsonValue() if hasattr(struct, "jsonValue") else struct
    if not isinstance(document, Mapping) or document.get("type") != "struct":
        raise SchemaError("Spark schema: expected a StructType or its JSON form")
    return _schema(_spark_fields(document, "", True, 0, 0), name)


def _spark_fields(
    struct: Mapping[str, Any], prefix: str, mandatory: bool, depth: int, lists: int
) -> Iterator[_ImportedAttribute]:
    """The attributes of a struct, which is in so many arrays of structs."""
    if depth > _NESTING:
        raise SchemaError(f"Spark schema: nested deeper than {_NESTING} levels at {prefix!r}")
    fields = struct.get("fields")
    if not isinstance(fields, (list, tuple)):
        raise SchemaError(f"Spark schema: expected a list of fields at {prefix or 'the top'!r}")
    for field in fields:
        if not isinstance(field, Mapping) or not {"name", "type"} <= field.keys():
            raise SchemaError(f"Spark schema: a field needs 'name' and 'type', got {field!r}")
        name, kind = f"{prefix}{field['name']}", field["type"]
        needed = mandatory and not field.get("nullable", True)
        multiple = isinstance(kind, Mapping) and kind.get("type") == "array"
        if multiple:
            kind = kind.get("elementType")
        nested = isinstance(kind, Mapping) and kind.get("type") == "struct"
        if nested and not multiple:
            yield from _spark_fields(kind, f"{name}.", needed, depth + 1, lists)
        elif nested and lists < NESTING:
            domain = _structs(_spark_fields(kind, "", False, depth + 1, lists + 1))
            yield _ImportedAttribute(name, domain, Use(needed, True))
        else:
            yield _ImportedAttribute(name, _spark_domain(kind), Use(needed, multiple))


def _spark_domain(kind: Any) -> Domain:
    if not isinstance(kind, str):
        return BUILT_IN["opaque"]  # maps, arrays of arrays, user types
    bits = {"byte": 8, "short": 16, "integer": 32}.get(kind)
    if bits:
        return Integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    stem = kind.split("(")[0].split(" ")[0]
    names = {
        "long": "integer",
        "float": "decimal",
        "double": "decimal",
        "decimal": "decimal",
        "string": "text",
        "char": "text",
        "varchar": "text",
        "boolean": "boolean",
        "timestamp": "timestamp",
        "timestamp_ntz": "timestamp",
        "date": "timestamp",
    }
    return BUILT_IN[names.get(stem, "opaque")]
