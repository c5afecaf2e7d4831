"""The requests that look at the schema, and extend it by one of its five rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tamis.client.answers import ExtensionReceipt
from tamis.client.call import ServiceCall
from tamis.client.plans import fetch, quoted, send

_PATH = "/v1/schema"


def schema() -> ServiceCall[dict[str, Any]]:
    """The schema, as a document that `tamis.Schema.from_dict` reads."""
    return fetch(_PATH, dict[str, Any])


def create_domain(name: str, domain: Mapping[str, Any]) -> ServiceCall[ExtensionReceipt]:
    """Create a domain (first rule), such as `{"kind": "enumerated", "values": ["new", "used"]}`."""
    return _extend("domains", {"name": name, "domain": domain})


def create_attribute(name: str, domain: str | Mapping[str, Any]) -> ServiceCall[ExtensionReceipt]:
    """Create an attribute over a domain (second rule)."""
    return _extend("attributes", {"name": name, "domain": domain})


def extend_event_type(
    name: str, attribute: str, *, use: str = "optional"
) -> ServiceCall[ExtensionReceipt]:
    """Extend an event type with an optional attribute that it lacks (third rule)."""
    return _extend(f"event-types/{quoted(name)}/attributes", {"attribute": attribute, "use": use})


def create_event_type(name: str, attributes: Mapping[str, str]) -> ServiceCall[ExtensionReceipt]:
    """Create an event type (fourth rule): its attributes, each with its use."""
    return _extend("event-types", {"name": name, "attributes": attributes})


def grow_domain(
    name: str,
    values: Sequence[str] | Mapping[str, Any],
    *,
    order: Sequence[tuple[str, str]] = (),
) -> ServiceCall[ExtensionReceipt]:
    """Let a domain grow by new values (fifth rule); in a hierarchy, values with their parents."""
    given = dict(values) if isinstance(values, Mapping) else list(values)
    return _extend(f"domains/{quoted(name)}/values", {"values": given, "order": list(order)})


def _extend(path: str, body: Mapping[str, Any]) -> ServiceCall[ExtensionReceipt]:
    # Not sent twice: the second one would be refused, because what it adds is there.
    return send("POST", f"{_PATH}/{path}", body, ExtensionReceipt)
