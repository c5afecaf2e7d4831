"""Routes of the schema: look at it, and extend it by one of the five rules.

An extension is a record in the sequence of the log. It applies to what comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from tamis.broker.access.caller import PUBLISHER
from tamis.broker.extension import extend_schema
from tamis.model.schema import Schema

router = APIRouter(prefix="/v1/schema", tags=["schema"])
Spec = str | dict[str, Any]


class NewDomain(BaseModel, extra="forbid"):
    """A domain in place, as in the document of a schema."""

    name: str
    domain: dict[str, Any] = Field(
        examples=[{"kind": "enumerated", "values": ["new", "used"]}],
        description="its kind, and what the kind needs: values, order, tree, parents, low, high",
    )


class NewAttribute(BaseModel, extra="forbid"):
    name: str
    domain: Spec = Field(
        examples=["decimal"], description="a built-in kind, the name of a domain, or a domain"
    )


class NewEventType(BaseModel, extra="forbid"):
    name: str
    attributes: dict[str, str] = Field(
        examples=[{"price": "mandatory", "tags": "optional multiple"}],
        description="each attribute with its use",
    )


class NewUse(BaseModel, extra="forbid"):
    attribute: str
    use: str = Field("optional", description="optional, or optional multiple")


class DomainGrowth(BaseModel, extra="forbid"):
    """New values of a domain."""

    values: list[str] | dict[str, str | list[str]] = Field(
        description="names; in a hierarchy, names with their parents"
    )
    order: list[tuple[str, str]] = Field(
        default=[], description="pairs (lower, higher), each with a new value"
    )


class ExtensionAnswer(BaseModel):
    """Where an extension is in the sequence: it applies to what comes after it."""

    sequence: int
    version: int


@router.get("")
async def show_schema(request: Request) -> dict[str, Any]:
    """The schema at the end of the log, as a document."""
    server = request.app.state.server
    server.caller(request)
    found: dict[str, Any] = server.broker.schema.to_dict()
    return found


@router.post("/domains", status_code=201)
async def create_domain(request: Request, given: NewDomain) -> ExtensionAnswer:
    """Create a domain (first rule)."""
    return await _extend(
        request, "create-domain", lambda old: old.create_domain(given.name, given.domain)
    )


@router.post("/attributes", status_code=201)
async def create_attribute(request: Request, given: NewAttribute) -> ExtensionAnswer:
    """Create an attribute over a domain (second rule)."""
    return await _extend(
        request, "create-attribute", lambda old: old.create_attribute(given.name, given.domain)
    )


@router.post("/event-types/{name}/attributes", status_code=201)
async def extend_event_type(request: Request, name: str, given: NewUse) -> ExtensionAnswer:
    """Extend an event type with an optional attribute that it lacks (third rule)."""
    return await _extend(
        request,
        "extend-event-type",
        lambda old: old.extend_event_type(name, given.attribute, given.use),
    )


@router.post("/event-types", status_code=201)
async def create_event_type(request: Request, given: NewEventType) -> ExtensionAnswer:
    """Create an event type (fourth rule)."""
    return await _extend(
        request,
        "create-event-type",
        lambda old: old.create_event_type(given.name, given.attributes),
    )


@router.post("/domains/{name}/values", status_code=201)
async def grow_domain(request: Request, name: str, given: DomainGrowth) -> ExtensionAnswer:
    """Let a domain grow by new values (fifth rule)."""
    return await _extend(
        request, "grow-domain", lambda old: old.grow_domain(name, given.values, given.order)
    )


async def _extend(
    request: Request, rule: str, build: Callable[[Schema], Schema]
) -> ExtensionAnswer:
    server = request.app.state.server
    server.caller(request).require(PUBLISHER)
    # In a thread: a large schema takes a while to build.
    asked = await run_in_threadpool(extend_schema, server.broker, rule, build)
    extended = await asyncio.wrap_future(asked)
    return ExtensionAnswer(sequence=extended.sequence, version=extended.version)
