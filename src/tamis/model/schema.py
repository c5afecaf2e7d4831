"""The integrated event schema: domains, attributes, event types, and five extension rules.

A `Schema` is immutable. An extension returns a new schema with the next version. There is no other
way to change a schema, so no change breaks a subscription or a publisher (Le Subscribe, sections
2.1 and 2.2; the fifth rule is ours).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import EventError, SchemaError, suggestion
from tamis.model.domain import (
    Boolean,
    Decimal,
    Domain,
    Integer,
    Opaque,
    Text,
    check_name,
    domains_under,
)
from tamis.model.domain import Timestamp as TimestampDomain
from tamis.model.dynamic import Dynamic
from tamis.model.named_domains import Enumerated
from tamis.model.object_paths import Paths, object_paths

if TYPE_CHECKING:
    from tamis.model.event import Event
    from tamis.model.schemas.growth import NewValues

EVENT_TYPE = "event_type"
REFUSE, IGNORE, DYNAMIC = "refuse", "ignore", "dynamic"
"""What an attribute of an event means that the schema does not know there. In an open schema it is
dynamic as soon as a condition mentions it."""
_OPEN = ("dynamic", "structs")  # the domains of attributes in an open schema
_VIEWS = 1024  # cached views, one per combination of event types
BUILT_IN: Mapping[str, Domain] = MappingProxyType(
    {
        domain.kind: domain
        for domain in (
            *(Integer(), Decimal(), Text(), Boolean(), TimestampDomain(), Opaque()),
            Dynamic(),
        )
    }
)


class Use(NamedTuple):
    """How an event type uses an attribute."""

    mandatory: bool
    multiple: bool

    def __str__(self) -> str:
        words = "mandatory" if self.mandatory else "optional"
        return f"{words} multiple" if self.multiple else words

    @classmethod
    def parse(cls, text: object, where: str) -> Use:
        """From "mandatory", "optional", "optional multiple", "mandatory unique" …"""
        words = text.split() if isinstance(text, str) else []
        presence = [word for word in words if word in ("mandatory", "optional")]
        number = [word for word in words if word in ("unique", "multiple")]
        if len(presence) != 1 or len(number) > 1 or len(presence) + len(number) != len(words):
            raise SchemaError(
                f"{where}: expected mandatory or optional, then unique or multiple if needed; "
                f"got {text!r}"
            )
        return cls(presence == ["mandatory"], number == ["multiple"])


View = Mapping[str, Use]
"""The union of some event types: mandatory wins over optional, multiple over unique."""


class Schema:
    """What events may contain. Build one with `from_dict`, `load` or an importer.

    An event that leaves `event_type` out is of the `default_event_type`. The only event type is the
    default, and it stays the default when others are created. `unknown` says what becomes of
    attributes that the schema does not know: the event is refused, or they are ignored, or, in an
    open schema, they are dynamic (`Schema.open`).

    >>> schema = Schema.from_dict({"attributes": {"price": "decimal", "tags": "text"},
    ...                            "event_types": {"offer": {"price": "mandatory",
    ...                                                      "tags": "optional multiple"}}})
    >>> print(schema.event({"price": 5, "tags": ["oak", "old"]}).values["price"])
    (5.0,)
    """

    def __init__(
        self,
        domains: Mapping[str, Domain] | None = None,
        attributes: Mapping[str, Domain] | None = None,
        event_types: Mapping[str, Mapping[str, Use]] | None = None,
        *,
        version: int = 1,
        default_event_type: str | None = None,
        unknown: str = REFUSE,
    ) -> None:
        domains, attributes = domains or {}, attributes or {}
        if unknown not in (REFUSE, IGNORE, DYNAMIC):
            raise SchemaError(f"unknown: expected {REFUSE}, {IGNORE} or {DYNAMIC}, got {unknown!r}")
        self.unknown = unknown
        self.is_open = unknown == DYNAMIC
        if any(each.of_structs for each in (*domains.values(), *attributes.values())):
            domains, attributes = domains_under(unknown, domains, attributes)
        types = {name: dict(uses) for name, uses in (event_types or {}).items()}
        named = (("event type", types), ("domain", domains), ("attribute", attributes))
        for kind, name in ((kind, name) for kind, names in named for name in names):
            check_name(f"{kind} {name!r}", name)
        if unknown == DYNAMIC and (
            types or domains or any(each.kind not in _OPEN for each in attributes.values())
        ):
            raise SchemaError(
                f"unknown: {DYNAMIC} makes an open schema, which declares nothing; with domains, "
                f"event types or typed attributes, write {REFUSE} or {IGNORE}"
            )
        if EVENT_TYPE in attributes:
            raise SchemaError(f"{EVENT_TYPE!r} is in every schema; leave it out")
        for name in domains:
            if name in BUILT_IN:
                raise SchemaError(f"domain {name!r}: the name is taken by a built-in kind")
        for name in attributes:
            parts = name.split(".")
            for end in range(1, len(parts)):
                if (stem := ".".join(parts[:end])) in attributes and unknown != DYNAMIC:
                    # A nested object could bind either.
                    raise SchemaError(f"attribute {name!r} is nested in attribute {stem!r}")
        self.domains: Mapping[str, Domain] = MappingProxyType(dict(domains))
        # event_type comes first: its position does not move when attributes are created.
        self.attributes: Mapping[str, Domain] = MappingProxyType(
            {EVENT_TYPE: Dynamic() if unknown == DYNAMIC else Enumerated(types), **attributes}
        )
        # The attributes that are lists of structs.
        self.lists = frozenset(name for name, each in attributes.items() if each.of_structs)
        for name, uses in types.items():
            for attribute in self.lists & uses.keys():
                uses[attribute] = Use(uses[attribute].mandatory, True)
            for attribute in uses:
                self.domain(attribute, f"event type {name!r}")
                if attribute == EVENT_TYPE:
                    raise SchemaError(
                        f"event type {name!r}: leave {EVENT_TYPE!r} out, every type has it"
                    )
        self.event_types: Mapping[str, View] = MappingProxyType(
            {name: MappingProxyType(uses) for name, uses in types.items()}
        )
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise SchemaError(f"version: expected a whole number from 1, got {version!r}")
        self.version = version
        if default_event_type is None and len(types) == 1:
            (default_event_type,) = types
        if default_event_type is not None and not (
            isinstance(default_event_type, str) and default_event_type in types
        ):
            hint = suggestion(default_event_type, types)
            raise SchemaError(f"default_event_type: unknown type {default_event_type!r}{hint}")
        self.default_event_type = default_event_type
        # Where a nested object may hold attributes: the names before a dot.
        self.stems = frozenset(
            name[:at] for name in attributes for at, mark in enumerate(name) if mark == "."
        )
        self._views: dict[frozenset[str], View] = {}

    # -- reading ---------------------------------------------------------------------------------

    def domain(self, attribute: str, where: str = "schema") -> Domain:
        """The domain of an attribute. Raises a `SchemaError` that suggests the nearest name."""
        try:
            return self.attributes[attribute]
        except (KeyError, TypeError):
            hint = suggestion(attribute, self.attributes)
            raise SchemaError(f"{where}: unknown attribute {attribute!r}{hint}") from None

    @cached_property
    def paths(self) -> Paths:
        """Where the attributes are in nested objects."""
        return object_paths(name for name in self.attributes if name not in self.lists)

    def view(self, types: Iterable[str]) -> View:
        """The view over some event types; of an open schema, all attributes."""
        chosen = frozenset() if self.is_open else frozenset(types)
        view = self._views.get(chosen)
        if view is None:
            uses: dict[str, Use] = {}
            if self.is_open:
                uses = dict.fromkeys(self.attributes, Use(False, True))
            for name in sorted(chosen - self.event_types.keys()):
                raise EventError(
                    f"unknown event type {name!r}{suggestion(name, self.event_types)}",
                    rule="R1",
                    attribute=EVENT_TYPE,
                )
            # In schema order, so that a view is the same in every process.
            for name in (each for each in self.event_types if each in chosen):
                for attribute, use in self.event_types[name].items():
                    other = uses.get(attribute, Use(False, False))
                    uses[attribute] = Use(
                        use.mandatory or other.mandatory, use.multiple or other.multiple
                    )
            if len(self._views) >= _VIEWS:  # publishers choose the combinations: bound the cache
                self._views.clear()
            view = self._views[chosen] = MappingProxyType(uses)
        return view

    def event(self, given: Mapping[str, Any]) -> Event:
        """Validate an event. An `EventError` names the event type, the attribute and the rule."""
        from tamis.model.event import Event

        return Event.of(self, given)

    # -- the five extension rules ----------------------------------------------------------------

    def create_domain(self, name: str, domain: Domain | Mapping[str, Any]) -> Schema:
        """Create a domain (first extension rule)."""
        from tamis.model.schemas.document import read_domain

        if name in self.domains or name in BUILT_IN:
            raise SchemaError(f"create domain {name!r}: the name is taken")
        made = domain if isinstance(domain, Domain) else read_domain(domain, {}, f"domain {name!r}")
        return self._next(domains={**self.domains, name: made})

    def create_attribute(self, name: str, domain: Domain | str | Mapping[str, Any]) -> Schema:
        """Create an attribute over a domain (second extension rule)."""
        from tamis.model.schemas.document import read_domain

        if name in self.attributes:
            raise SchemaError(f"create attribute {name!r}: the name is taken")
        where = f"attribute {name!r}"
        made = domain if isinstance(domain, Domain) else read_domain(domain, self.domains, where)
        return self._next(attributes={**self._own_attributes(), name: made})

    def extend_event_type(self, name: str, attribute: str, use: str | Use = "optional") -> Schema:
        """Add an *optional* attribute to an event type that lacks it (third rule)."""
        where = f"extend event type {name!r}"
        made = use if isinstance(use, Use) else Use.parse(use, where)
        if name not in self.event_types:
            raise SchemaError(f"{where}: unknown event type{suggestion(name, self.event_types)}")
        self.domain(attribute, where)
        if attribute in self.event_types[name]:
            raise SchemaError(f"{where}: it has {attribute!r} already, and its use cannot change")
        if made.mandatory:
            raise SchemaError(
                f"{where}: {attribute!r} must be optional; a mandatory attribute would refuse "
                "events of publishers who do not know it"
            )
        uses = {**self.event_types[name], attribute: made}
        return self._next(event_types={**self.event_types, name: uses})

    def create_event_type(self, name: str, uses: Mapping[str, str | Use]) -> Schema:
        """Create an event type (fourth extension rule). The default event type stays."""
        if name in self.event_types:
            raise SchemaError(f"create event type {name!r}: the name is taken")
        if not isinstance(uses, Mapping):
            raise SchemaError(f"event type {name!r}: expected a mapping of attributes to uses")
        made = {
            attribute: use if isinstance(use, Use) else Use.parse(use, f"event type {name!r}")
            for attribute, use in uses.items()
        }
        return self._next(event_types={**self.event_types, name: made})

    def grow_domain(
        self, name: str, values: NewValues, order: Iterable[tuple[str, str]] = ()
    ) -> Schema:
        """Let a domain grow by new values (fifth rule), with pairs (lower, higher) if it has them.

        In a hierarchy, `values` maps names to parents. `name` is that of a domain, or an attribute.
        Equal domains grow too: conditions may compare their attributes.
        """
        from tamis.model.schemas.growth import grown_domains

        given = (self.domains, self._own_attributes())
        domains, attributes = grown_domains(*given, name, values, order)
        return self._next(domains=domains, attributes=attributes)

    def check_extends(self, older: Schema) -> None:
        """Raise unless this schema extends `older` by the five extension rules alone."""
        from tamis.model.schemas.extension import check_extension

        if not isinstance(older, Schema):
            raise SchemaError(f"expected a Schema, got {type(older).__name__}")
        check_extension(older, self)

    def grown_attributes(self, older: Schema) -> list[str]:
        """The attributes whose domains have more values than in an older schema."""
        return [
            name
            for name, domain in older._own_attributes().items()
            if self.attributes[name] is not domain and self.attributes[name] != domain
        ]

    def _own_attributes(self) -> dict[str, Domain]:
        return {name: d for name, d in self.attributes.items() if name != EVENT_TYPE}

    def _next(self, **changed: Any) -> Schema:
        parts = {
            "domains": self.domains,
            "attributes": self._own_attributes(),
            "event_types": self.event_types,
            "default_event_type": self.default_event_type,
            "unknown": self.unknown,
        }
        return Schema(**{**parts, **changed}, version=self.version + 1)

    # -- documents -------------------------------------------------------------------------------

    @classmethod
    def open(cls) -> Schema:
        """The open schema: any JSON object is an event, and every attribute is dynamic.

        It declares nothing. An attribute joins it when a condition mentions it; all else in events
        is ignored.
        """
        return cls(unknown=DYNAMIC)

    def mentioning(self, names: Iterable[str], **lists: Domain) -> Schema:
        """The open schema with these attributes and lists; any other schema as it is."""
        fresh: dict[str, Domain] = {n: Dynamic() for n in names if n not in self.attributes}
        if not self.is_open or not (fresh or lists):
            return self
        return self._next(attributes={**self._own_attributes(), **fresh, **lists})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """From the document form: domains, attributes, event_types, default_event_type, unknown."""
        from tamis.model.schemas.document import read_schema

        return read_schema(document)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """From a YAML or JSON file."""
        from tamis.model.schemas.document import load_schema

        try:
            return load_schema(Path(path))
        except (TypeError, ValueError) as why:
            raise SchemaError(f"{path!r} is not a path: {why}") from None

    @classmethod
    def infer(cls, events: Any, name: str = "event") -> Schema:
        """Propose a typed schema from a sample: dicts, lines of JSON, an Arrow table, a DataFrame.

        Its domains are those that all values of the sample have; `dynamic` for a mixture. `name`
        names the event type.
        """
        from tamis.model.schemas.inference import infer_schema

        return infer_schema(events, name)

    @classmethod
    def from_json_schema(cls, document: Mapping[str, Any], name: str | None = None) -> Schema:
        """From a JSON Schema of type object; `name` names the event type."""
        from tamis.model.schemas.importers import from_json_schema

        return from_json_schema(document, name)

    @classmethod
    def from_arrow(cls, schema: Any, name: str = "event") -> Schema:
        """From a pyarrow schema; `name` names the event type."""
        from tamis.model.schemas.importers import from_arrow

        return from_arrow(schema, name)

    @classmethod
    def from_spark(cls, struct: Any, name: str = "event") -> Schema:
        """From a Spark StructType, or its JSON as text or mapping; pyspark is not imported."""
        from tamis.model.schemas.importers import from_spark

        return from_spark(struct, name)

    def to_dict(self) -> dict[str, Any]:
        """The document form; `Schema.from_dict` reads it back to an equal schema."""
        from tamis.model.schemas.document import write_schema

        return write_schema(self)

    @cached_property
    def text(self) -> str:
        """The document form as JSON; schemas are equal in every respect if their texts are."""
        return json.dumps(self.to_dict())

    def to_yaml(self) -> str:
        """The document form as YAML text."""
        from tamis.model.schemas.document import to_yaml

        return to_yaml(self)

    def summary(self) -> str:
        """A summary for people."""
        from tamis.model.schemas.document import summary_of

        return summary_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.version, *self.attributes, *self.event_types))

    def __repr__(self) -> str:
        return (
            f"Schema(version={self.version}, attributes={len(self.attributes) - 1}, "
            f"event_types={list(self.event_types)})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, document: dict[str, Any]) -> None:
        self.__dict__.update(Schema.from_dict(document).__dict__)
