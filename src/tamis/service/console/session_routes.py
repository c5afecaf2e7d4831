"""Routes of sessions: sign in with a key, see who one is, sign out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tamis import __version__
from tamis.service.console.positions import POSITION
from tamis.service.console.sessions import IDLE, RequestOrigin
from tamis.service.problems import HttpError

PREFIX = "/console/api"
LOGIN = f"{PREFIX}/login"  # the one write for which nobody has to be known
router = APIRouter(prefix=PREFIX, include_in_schema=False)


class SignIn(BaseModel, extra="forbid"):
    key: Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]


class SignedIn(BaseModel):
    """Who has signed in, and what the pages have to know about the service."""

    name: str | None
    roles: list[str]
    version: str
    ids: str  # int64 or text
    anonymous: bool  # whether callers without a key may subscribe and publish
    map: bool  # whether events may have a position


@router.post("/login")
async def sign_in(request: Request, given: SignIn, response: Response) -> SignedIn:
    """Begin a session of the console. Its token is in a cookie that no script can read."""
    server, asked = request.app.state.server, _own(request)
    given_key = f"Bearer {given.key}"
    caller = await run_in_threadpool(server.holder, given_key)  # raises for an unknown one
    if asked.token is not None:  # whoever signs in again leaves no session behind
        server.sessions.end(asked.token)
    response.set_cookie(
        asked.cookie_name,
        server.sessions.begin(given.key),
        max_age=int(IDLE),
        httponly=True,
        samesite="strict",
        secure=request.scope["scheme"] == "https" or asked.is_secure,
    )
    return _signed_in(server, caller)


@router.post("/logout", status_code=204)
async def sign_out(request: Request, response: Response) -> None:
    """End the session."""
    asked = _own(request)
    if asked.token is not None:
        request.app.state.server.sessions.end(asked.token)
    response.delete_cookie(asked.cookie_name, httponly=True, samesite="strict")


@router.get("/me")
async def me(request: Request) -> SignedIn:
    """Who has signed in; 401 if nobody has."""
    return _signed_in(request.app.state.server, signed_in_caller(request))


def signed_in_caller(request: Request) -> Any:
    """Who calls for the console, which is for those who have signed in or send a key."""
    server = request.app.state.server
    if "authorization" not in request.headers:
        raise HttpError(401, "nobody has signed in to the console here, or the session has ended")
    return server.caller(request)


def _own(request: Request) -> RequestOrigin:
    asked = RequestOrigin.of(request.method, request.scope["headers"])
    if not asked.is_own:
        raise HttpError(403, "only the pages of this console may ask for this")
    return asked


def _signed_in(server: Any, caller: Any) -> SignedIn:
    return SignedIn(
        name=caller.name,
        roles=sorted(caller.roles),
        version=__version__,
        ids=server.broker.log.ids,
        anonymous=server.settings.anonymous,
        map=POSITION in server.broker.schema.attributes,
    )
