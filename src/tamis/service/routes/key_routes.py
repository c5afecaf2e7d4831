"""Routes of API keys, for admins."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request

from tamis.broker.access.caller import ADMIN

router = APIRouter(prefix="/v1/keys", tags=["keys"])


class NewKey(BaseModel, extra="forbid"):
    name: str
    roles: list[str]


class CreatedKey(BaseModel):
    key: str


class ShownKey(BaseModel):
    id: str
    name: str
    roles: list[str]
    created: datetime


@router.post("", status_code=201)
def create(request: Request, given: NewKey) -> CreatedKey:
    """Create a key. It is shown only here."""
    server = request.app.state.server
    server.caller(request).require(ADMIN)
    return CreatedKey(key=server.broker.keys.create(given.name, given.roles))


@router.get("")
def list_keys(request: Request) -> list[ShownKey]:
    """All keys, without their secrets."""
    server = request.app.state.server
    server.caller(request).require(ADMIN)
    return [
        ShownKey(
            id=each.id,
            name=each.name,
            roles=list(each.roles),
            created=datetime.fromtimestamp(each.created / 1e6, UTC),
        )
        for each in server.broker.keys.list()
    ]


@router.delete("/{id}", status_code=204)
def revoke(request: Request, id: str) -> None:
    """End a key at once."""
    server = request.app.state.server
    server.caller(request).require(ADMIN)
    server.broker.keys.revoke(id)
