"""Whether a schema extends another by the extension rules alone."""

from __future__ import annotations

from tamis.errors import SchemaError
from tamis.model.domain import Domain
from tamis.model.schema import EVENT_TYPE, Schema
from tamis.model.schemas.growth import check_growth


def check_extension(older: Schema, newer: Schema) -> None:
    """Raise unless `newer` extends `older`; say what was changed."""
    for name, domain in older.domains.items():
        check_growth(domain, newer.domains.get(name), f"domain {name!r}")
    for name, domain in _own(older).items():
        check_growth(domain, newer.attributes.get(name), f"attribute {name!r}")
    for name in newer.grown_attributes(older):
        for other, domain in _own(older).items():
            alike = domain == older.attributes[name]
            if alike and newer.attributes[other] != newer.attributes[name]:
                raise SchemaError(f"{name!r} and {other!r} had one domain; let both grow")
    if list(newer.attributes)[: len(older.attributes)] != list(older.attributes):
        raise SchemaError("attributes were reordered; new ones come last")
    if list(newer.event_types)[: len(older.event_types)] != list(older.event_types):
        raise SchemaError("event types were dropped or reordered; new ones come last")
    for name, uses in older.event_types.items():
        now = newer.event_types[name]
        for attribute, use in uses.items():
            if now.get(attribute) != use:
                raise SchemaError(f"event type {name!r}: its use of {attribute!r} was changed")
        for attribute in now.keys() - uses.keys():
            if now[attribute].mandatory:
                raise SchemaError(
                    f"event type {name!r}: the new attribute {attribute!r} must be optional"
                )
    if newer.default_event_type != older.default_event_type:
        raise SchemaError(
            f"default_event_type was changed from {older.default_event_type or 'none'} to "
            f"{newer.default_event_type or 'none'}; an extension keeps it: "
            + (
                f"write default_event_type: {older.default_event_type}"
                if older.default_event_type
                else "leave default_event_type out"
            )
        )

    if newer.unknown != older.unknown:
        raise SchemaError(
            f"unknown was changed from {older.unknown} to {newer.unknown}; an extension keeps it"
        )


def _own(schema: Schema) -> dict[str, Domain]:
    return {name: each for name, each in schema.attributes.items() if name != EVENT_TYPE}
