"""Schemas as YAML or JSON documents. Errors name the entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tamis.errors import SchemaError, suggestion
from tamis.model.domain import Domain, Integer, noun, show
from tamis.model.elements.structs import NESTING, Structs
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.schema import BUILT_IN, DYNAMIC, EVENT_TYPE, IGNORE, REFUSE, Schema, Use
from tamis.model.yaml_document import read_yaml

_ENTRIES = ("version", "domains", "attributes", "event_types", "default_event_type", "unknown")


def read_schema(document: Mapping[str, Any]) -> Schema:
    """Read a schema from its document form.

    Without `event_types` there is one, `event`, in which every attribute is optional, and unknown
    attributes are ignored. With event types they are refused, unless the document says otherwise.
    `unknown: dynamic` makes an open schema.
    """
    top = _mapping(document, "schema")
    _only(top, _ENTRIES, "schema")
    # Elements of an open schema are open too: conditions mention `a.b` and `a.b.c`.
    within = DYNAMIC if top.get("unknown") == DYNAMIC else IGNORE
    domains: dict[str, Domain] = {}
    for name, spec in _entries(top.get("domains"), "domains").items():
        domains[name] = read_domain(spec, domains, f"domain {name!r}")
    attributes = {
        name: read_domain(spec, domains, f"attribute {name!r}", unknown=within)
        for name, spec in _entries(top.get("attributes"), "attributes").items()
    }
    event_types = {
        name: {
            attribute: Use.parse(use, f"event type {name!r}, attribute {attribute!r}")
            for attribute, use in _entries(uses, f"event type {name!r}").items()
        }
        for name, uses in _entries(top.get("event_types"), "event_types").items()
    }
    unknown = top.get("unknown", REFUSE if event_types else IGNORE)
    if not event_types and unknown != DYNAMIC:
        event_types = {"event": {name: Use(False, False) for name in attributes}}
    return Schema(
        domains,
        attributes,
        event_types,
        version=top.get("version", 1),
        default_event_type=top.get("default_event_type"),
        unknown=unknown,
    )


def read_domain(
    spec: object,
    named: Mapping[str, Domain],
    where: str,
    depth: int = 0,
    unknown: str = IGNORE,
) -> Domain:
    """Read a domain: a built-in kind, the name of a domain, or a domain in place.

    `unknown` says what becomes of unknown attributes in the elements of lists.
    """
    if isinstance(spec, str):
        domain = named.get(spec) or BUILT_IN.get(spec)
        if domain is None:
            hint = _kind_hint(spec) or suggestion(spec, [*named, *BUILT_IN])
            raise SchemaError(f"{where}: unknown domain {spec!r}{hint}")
        return domain
    if not isinstance(spec, Mapping):
        raise SchemaError(
            f"{where}: expected a kind such as text, the name of a domain, or a mapping with "
            f"'kind'; got {spec!r}"
        )
    fields = dict(_mapping(spec, where))
    if "kind" not in fields:
        raise SchemaError(f"{where}: expected an entry 'kind', such as kind: integer")
    kind = fields.pop("kind")
    if not isinstance(kind, str):
        raise SchemaError(f"{where}: a kind is a word such as integer, got {show(kind)}")
    if kind == Structs.kind:
        return _read_structs(fields, named, where, depth, unknown)
    reader = _READERS.get(kind)
    if reader is None:
        hint = _kind_hint(kind) or suggestion(kind, (*_READERS, Structs.kind))
        raise SchemaError(f"{where}: unknown kind {kind!r}{hint}")
    try:
        return reader(fields, where)
    except SchemaError as error:
        if str(error).startswith(where):
            raise
        raise SchemaError(f"{where}: {error}") from None


_SEVERAL = "; several values are one attribute that an event type declares as: optional multiple"
_OTHER_NAMES = {
    **dict.fromkeys(("float", "double", "number", "real", "numeric"), "decimal"),
    **dict.fromkeys(("int", "int64", "long", "bigint"), "integer"),
    **dict.fromkeys(("string", "str", "varchar", "keyword"), "text"),
    **dict.fromkeys(("date", "datetime", "time"), "timestamp"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("enum",), "enumerated"),
    **dict.fromkeys(("object", "struct", "record"), "structs"),
    **dict.fromkeys(("json", "any", "binary", "bytes"), "opaque"),
}


def _kind_hint(kind: str) -> str:
    """A hint for the name of a kind in another language."""
    if kind in ("list", "array", "set"):
        return _SEVERAL
    meant = _OTHER_NAMES.get(kind.lower())
    return f"; did you mean {meant!r}?" if meant else ""


def _read_integer(fields: dict[str, Any], where: str) -> Domain:
    _only(fields, ("low", "high"), where)
    return Integer(fields.get("low"), fields.get("high"))


def _read_enumerated(fields: dict[str, Any], where: str) -> Domain:
    _only(fields, ("values", "order"), where)
    values, order = fields.get("values"), fields.get("order")
    if not isinstance(values, (list, tuple)) or not values:
        raise SchemaError(f"{where}: 'values' must be a list of at least one name")
    if order is not None:
        pairs = isinstance(order, (list, tuple)) and all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in order
        )
        if not pairs:
            raise SchemaError(f"{where}: 'order' must be a list of pairs [lower, higher]")
    return Enumerated(values, order)


def _read_hierarchy(fields: dict[str, Any], where: str) -> Domain:
    _only(fields, ("tree", "parents"), where)
    tree = _entries(fields.get("tree"), f"{where}, tree")
    above = _entries(fields.get("parents"), f"{where}, parents")
    if not tree and not above:
        raise SchemaError(f"{where}: a hierarchy needs 'tree', 'parents' or both")
    for name, names in above.items():
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, (list, tuple)) or not all(isinstance(n, str) for n in listed):
            raise SchemaError(f"{where}: the parents of {name!r} must be a list of names")
    return Hierarchy.from_tree(tree, above)


def _read_structs(
    fields: dict[str, Any], named: Mapping[str, Domain], where: str, depth: int, unknown: str
) -> Domain:
    _only(fields, ("attributes", "multiple"), where)
    if depth >= NESTING:
        raise SchemaError(f"{where}: structs are nested deeper than {NESTING} levels")
    attributes = {
        name: read_domain(spec, named, f"{where}, attribute {name!r}", depth + 1, unknown)
        for name, spec in _entries(fields.get("attributes"), f"{where}, attributes").items()
    }
    multiple = fields.get("multiple") or ()
    if not isinstance(multiple, (list, tuple)) or not all(isinstance(n, str) for n in multiple):
        raise SchemaError(f"{where}: 'multiple' must be a list of names of attributes")
    try:
        return Structs(attributes, multiple, unknown)
    except SchemaError as why:
        raise SchemaError(f"{where}: {why}") from None


def _plain(kind: str) -> Callable[[dict[str, Any], str], Domain]:
    def read(fields: dict[str, Any], where: str) -> Domain:
        _only(fields, (), where)
        return BUILT_IN[kind]

    return read


_READERS: dict[str, Callable[[dict[str, Any], str], Domain]] = {
    **{kind: _plain(kind) for kind in BUILT_IN},
    "integer": _read_integer,
    "enumerated": _read_enumerated,
    "hierarchy": _read_hierarchy,
}


def write_schema(schema: Schema) -> dict[str, Any]:
    """The document form of a schema."""
    names = {id(domain): name for name, domain in schema.domains.items()}

    def written(domain: Domain, named: bool = True) -> str | dict[str, Any]:
        if named and id(domain) in names:
            return names[id(domain)]
        if not isinstance(domain, Structs):
            return domain.to_dict()
        return domain.document({n: written(each) for n, each in domain.attributes.items()})

    document = {
        "version": schema.version,
        "domains": {name: written(domain, False) for name, domain in schema.domains.items()},
        "attributes": {
            name: written(domain)
            for name, domain in schema.attributes.items()
            if name != EVENT_TYPE
        },
        "event_types": {
            name: {attribute: str(use) for attribute, use in uses.items()}
            for name, uses in schema.event_types.items()
        },
    }
    if schema.default_event_type is not None:
        document["default_event_type"] = schema.default_event_type
    if schema.unknown != REFUSE:
        document["unknown"] = schema.unknown
    return document


def summary_of(schema: Schema) -> str:
    """A summary for people."""
    lines = [f"schema version {schema.version}"]
    for name, uses in schema.event_types.items():
        lines.append(f"{name} (default)" if name == schema.default_event_type else name)
        width = max((len(attribute) for attribute in uses), default=0)
        for attribute, use in uses.items():
            described = schema.attributes[attribute].describe()
            lines.append(f"  {attribute:<{width}}  {use!s:<18}  {described}")
    used = {EVENT_TYPE, *(attribute for uses in schema.event_types.values() for attribute in uses)}
    unused = [name for name in schema.attributes if name not in used]
    if schema.is_open:
        return "\n".join([*lines, "open; dynamic attributes: " + (", ".join(unused) or "none yet")])
    if unused:
        lines.append("attributes in no event type: " + ", ".join(unused))
    return "\n".join(lines)


def to_yaml(schema: Schema) -> str:
    """The document form as YAML text, in document order."""
    return yaml.safe_dump(write_schema(schema), sort_keys=False, allow_unicode=True)


def load_schema(path: Path) -> Schema:
    """Read a schema from a YAML or JSON file (JSON is YAML)."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as why:
        raise SchemaError(f"{path}: cannot be read: {why.strerror or why}") from None
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: cannot be read: it is not UTF-8 text") from None
    try:
        document = read_yaml(text)
    except (yaml.YAMLError, RecursionError, ValueError) as why:  # ValueError: 2026-13-45
        raise SchemaError(f"{path}: not valid YAML or JSON: {why}") from None
    try:
        return read_schema(document)
    except SchemaError as why:
        raise SchemaError(f"{path}: {why}") from None


def _mapping(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        what = "nothing" if given is None else noun(given)
        raise SchemaError(f"{where}: expected a mapping, got {what}")
    for key in given:
        if not isinstance(key, str):
            raise SchemaError(f"{where}: the key {key!r} is not text; put it in quotes")
    return given


def _entries(given: object, where: str) -> Mapping[str, Any]:
    """A mapping; null, as an empty entry of YAML, is an empty one."""
    return {} if given is None else _mapping(given, where)


def _only(fields: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in fields:
        if name not in known:
            raise SchemaError(f"{where}: unknown entry {name!r}{suggestion(name, known)}")
