"""Routes that change nothing: check a condition, explain an answer, match an event."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request

from tamis.broker.access.caller import PUBLISHER, SUBSCRIBER
from tamis.language.dialects import NATIVE

router = APIRouter(prefix="/v1", tags=["questions"])
MATCHES = 10_000  # subscriptions in the answer of a dry run


class AskedCondition(BaseModel, extra="forbid"):
    condition: str
    language: str = NATIVE


class AskedExplanation(AskedCondition):
    event: dict[str, Any]


class AskedEvent(BaseModel, extra="forbid"):
    event: dict[str, Any]


class ExplanationAnswer(BaseModel):
    matches: bool
    explanation: str


class MatchAnswer(BaseModel):
    subscriptions: list[int | str] = Field(
        description=f"in the order of their ids, the first {MATCHES:,} at most"
    )
    count: int = Field(description="how many would match")


@router.post("/check", status_code=204)
def check(request: Request, given: AskedCondition) -> None:
    """Check a condition as a subscribe would; 400 says what is wrong and where."""
    server = request.app.state.server
    server.caller(request).require(SUBSCRIBER)
    server.broker.check(given.condition, given.language)


@router.post("/explain")
async def explain(request: Request, given: AskedExplanation) -> ExplanationAnswer:
    """Explain why an event satisfies a condition or not."""
    server = request.app.state.server
    server.caller(request).require(SUBSCRIBER)
    found = await server.ask(server.broker.explain, given.condition, given.event, given.language)
    return ExplanationAnswer(matches=found.holds, explanation=str(found))


@router.post("/match")
async def match(request: Request, given: AskedEvent) -> MatchAnswer:
    """The caller's subscriptions that an event would match; nothing is published."""
    server = request.app.state.server
    caller = server.caller(request)
    caller.require(PUBLISHER)
    found = await server.ask(server.broker.dry_run, given.event, caller)
    return MatchAnswer(subscriptions=found[:MATCHES], count=len(found))
