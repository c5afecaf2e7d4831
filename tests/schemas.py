"""Schemas in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def one_type(name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a schema with one event type.

    Behind the name of a domain, `!` says that the attribute is mandatory, and `*` that it may have
    several values. A domain of one's own is a mapping.
    """
    uses = {}
    for attribute, domain in attributes.items():
        marks = domain if isinstance(domain, str) else ""
        uses[attribute] = "mandatory" if "!" in marks else "optional"
        uses[attribute] += " multiple" if "*" in marks else ""
    domains = {
        attribute: domain.rstrip("!*") if isinstance(domain, str) else domain
        for attribute, domain in attributes.items()
    }
    return {"attributes": domains, "event_types": {name: uses}}
