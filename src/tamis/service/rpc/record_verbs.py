"""The verbs of gRPC about what the service keeps: dead letters, secrets, cursors, keys."""

from __future__ import annotations

import asyncio
from functools import partial

from tamis.broker.access.caller import ADMIN, Caller
from tamis.broker.state import StoredSubscription
from tamis.errors import BrokerError
from tamis.service.routes.consumer_routes import consumer_owner
from tamis.service.routes.dead_letter_routes import letters_of, retry_letter
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context
from tamis.service.rpc.verb_group import VerbGroup, given

_MOST = 1000  # dead letters in a page


class RecordVerbs(VerbGroup):
    """Dead letters, secrets of webhooks, cursors of consumers, and API keys."""

    async def rotate_secret(
        self, request: pb.RotateSecretRequest, context: Context
    ) -> pb.RotateSecretResponse:
        live = await self._live(request, context)
        secret = await asyncio.to_thread(self._broker.webhooks.rotate, live)
        return pb.RotateSecretResponse(secret=secret)

    async def dead_letters(
        self, request: pb.DeadLettersRequest, context: Context
    ) -> pb.DeadLettersResponse:
        most = request.most or 100
        if not 1 <= most <= _MOST or request.after < 0:
            raise BrokerError(f"most: is from 1 to {_MOST:,}, and after: is a cursor or 0")
        caller = await self._caller(context)
        found = await asyncio.to_thread(letters_of, self._broker, caller, request.after, most)
        return pb.DeadLettersResponse(
            dead_letters=map(messages.letter_of, found),
            cursor=found[-1].id if len(found) == most else None,
        )

    async def retry_dead_letter(
        self, request: pb.RetryDeadLetterRequest, context: Context
    ) -> pb.ReplayResponse:
        caller, ticket = await self._caller(context), given(request, "ticket")
        count = await asyncio.to_thread(retry_letter, self._broker, caller, request.id, ticket)
        return pb.ReplayResponse(replayed=count)

    async def replay(self, request: pb.ReplayRequest, context: Context) -> pb.ReplayResponse:
        live = await self._live(request, context)
        count = await asyncio.to_thread(self._broker.webhooks.replay, live.id)
        return pb.ReplayResponse(replayed=count)

    async def _live(
        self, request: pb.RotateSecretRequest | pb.ReplayRequest, context: Context
    ) -> StoredSubscription:
        """The subscription of a request, for its owner or the holder of its ticket."""
        return await asyncio.to_thread(
            partial(
                self._broker.subscription,
                self._id(request.id),
                ticket=given(request, "ticket"),
                caller=await self._caller(context),
            )
        )

    async def show_cursor(
        self, request: pb.ShowCursorRequest, context: Context
    ) -> pb.ConsumerCursor:
        owner = consumer_owner(await self._caller(context))
        found = await asyncio.to_thread(self._broker.consumers.cursor, owner, request.consumer)
        return pb.ConsumerCursor(cursor=found)

    async def set_cursor(self, request: pb.SetCursorRequest, context: Context) -> pb.ConsumerCursor:
        owner, cursors = consumer_owner(await self._caller(context)), self._broker.consumers
        await asyncio.to_thread(cursors.set_cursor, owner, request.consumer, request.cursor)
        return pb.ConsumerCursor(cursor=request.cursor)

    async def create_key(
        self, request: pb.CreateKeyRequest, context: Context
    ) -> pb.CreateKeyResponse:
        await self._admin(context)
        keys = self._broker.keys
        made = await asyncio.to_thread(keys.create, request.name, list(request.roles))
        return pb.CreateKeyResponse(key=made)

    async def list_keys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        await self._admin(context)
        found = await asyncio.to_thread(self._broker.keys.list)
        return pb.ListKeysResponse(keys=map(messages.key_of, found))

    async def revoke_key(
        self, request: pb.RevokeKeyRequest, context: Context
    ) -> pb.RevokeKeyResponse:
        await self._admin(context)
        await asyncio.to_thread(self._broker.keys.revoke, request.id)
        return pb.RevokeKeyResponse()

    async def _admin(self, context: Context) -> Caller:
        caller = await self._caller(context)
        caller.require(ADMIN)
        return caller
