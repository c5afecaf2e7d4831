"""Routes of named consumers."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request

from tamis.broker.access.caller import AccessError, Caller

router = APIRouter(prefix="/v1/consumers", tags=["consumers"])


class Cursor(BaseModel, extra="forbid"):
    """How far a consumer has read: the sequence number of the last event."""

    cursor: int = Field(ge=-1, lt=2**63)


@router.get("/{name}/cursor")
def show_cursor(request: Request, name: str) -> Cursor:
    """How far a consumer of the caller has read."""
    server = request.app.state.server
    return Cursor(
        cursor=server.broker.consumers.cursor(consumer_owner(server.caller(request)), name)
    )


@router.put("/{name}/cursor")
def set_cursor(request: Request, name: str, given: Cursor) -> Cursor:
    """Remember how far a consumer has read; on disk when this is answered."""
    server = request.app.state.server
    server.broker.consumers.set_cursor(consumer_owner(server.caller(request)), name, given.cursor)
    return given


def consumer_owner(caller: Caller) -> str:
    """Whose consumers a caller may use."""
    if caller.name is None:
        raise AccessError("only owners can have consumers: call with a key")
    return caller.name
