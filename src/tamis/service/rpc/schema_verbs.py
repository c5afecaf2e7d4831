"""The verbs of gRPC that show the schema, and extend it by one of its five rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tamis.broker.access.caller import PUBLISHER
from tamis.broker.extension import extend_schema
from tamis.errors import BrokerError
from tamis.model.schema import Schema
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context
from tamis.service.rpc.verb_group import VerbGroup, given


class SchemaVerbs(VerbGroup):
    """The schema and its extensions."""

    async def schema(self, request: pb.SchemaRequest, context: Context) -> pb.SchemaResponse:
        await self._caller(context)
        return pb.SchemaResponse(json=json.dumps(self._broker.schema.to_dict()).encode())

    async def create_domain(
        self, request: pb.CreateDomainRequest, context: Context
    ) -> pb.ExtensionResponse:
        domain = messages.json_object(request.domain, "domain")
        return await self._extend(
            context, "create-domain", lambda old: old.create_domain(request.name, domain)
        )

    async def create_attribute(
        self, request: pb.CreateAttributeRequest, context: Context
    ) -> pb.ExtensionResponse:
        domain: str | dict[str, Any] | None = given(request, "domain")
        if request.HasField("definition"):
            if domain is not None:
                raise BrokerError("an attribute has a domain or a definition of one, not both")
            domain = messages.json_object(request.definition, "definition")
        if domain is None:
            raise BrokerError("domain: is missing; give a kind, the name of a domain, or a domain")
        chosen = domain
        return await self._extend(
            context, "create-attribute", lambda old: old.create_attribute(request.name, chosen)
        )

    async def extend_event_type(
        self, request: pb.ExtendEventTypeRequest, context: Context
    ) -> pb.ExtensionResponse:
        use = given(request, "use") or "optional"
        return await self._extend(
            context,
            "extend-event-type",
            lambda old: old.extend_event_type(request.name, request.attribute, use),
        )

    async def create_event_type(
        self, request: pb.CreateEventTypeRequest, context: Context
    ) -> pb.ExtensionResponse:
        uses = dict(request.attributes)
        return await self._extend(
            context, "create-event-type", lambda old: old.create_event_type(request.name, uses)
        )

    async def grow_domain(
        self, request: pb.GrowDomainRequest, context: Context
    ) -> pb.ExtensionResponse:
        values = messages.new_values(request.values)
        order = [(each.lower, each.higher) for each in request.order]
        return await self._extend(
            context, "grow-domain", lambda old: old.grow_domain(request.name, values, order)
        )

    async def _extend(
        self, context: Context, rule: str, build: Callable[[Schema], Schema]
    ) -> pb.ExtensionResponse:
        (await self._caller(context)).require(PUBLISHER)
        # In a thread: a large schema takes a while to build.
        asked = await asyncio.to_thread(extend_schema, self._broker, rule, build)
        extended = await asyncio.wrap_future(asked)
        return pb.ExtensionResponse(sequence=extended.sequence, version=extended.version)
