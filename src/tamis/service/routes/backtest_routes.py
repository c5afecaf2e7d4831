"""Routes of back-tests: how many of the kept events a condition would have matched."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.cloud_events.write_cloud_event import stored_event
from tamis.broker.matching.notification_reader import TrimmedError
from tamis.broker.questions.backtests import BacktestJob, BacktestQuestion
from tamis.errors import NotFoundError
from tamis.language.dialects import NATIVE
from tamis.replay.past.log_backtest import BUCKETS, SAMPLES

router = APIRouter(prefix="/v1/backtest", tags=["questions"])
PATIENCE = 2.0  # seconds after which the answer is 202


class AskedBacktest(BaseModel, extra="forbid"):
    """What to test. Without a range, all events that are kept."""

    condition: str
    language: str = NATIVE
    first: int | None = Field(None, ge=0, lt=2**63, description="from this sequence number on")
    end: int | None = Field(None, ge=0, lt=2**63, description="before this sequence number")
    since: AwareDatetime | None = Field(None, description="published from this moment on")
    until: AwareDatetime | None = Field(None, description="published before this moment")
    samples: int = Field(SAMPLES, ge=0, le=100)
    buckets: int = Field(BUCKETS, ge=1, le=1000, description="most spans in `over_time`")


class BucketAnswer(BaseModel):
    begin: datetime
    end: datetime
    events: int
    matched: int


class SampleAnswer(BaseModel):
    sequence: int
    event: str | None = Field(description="JSON; null if the event is no longer kept")


class BacktestAnswer(BaseModel):
    """A back-test; `dead` events are not valid. Without counts it is still running: ask again."""

    id: str
    progress: float = Field(description="from 0 to 1")
    events: int
    matched: int | None = None
    dead: int | None = None
    first: int | None = None
    end: int | None = None
    over_time: list[BucketAnswer] | None = None
    samples: list[SampleAnswer] | None = None


@router.post("", responses={202: {"model": BacktestAnswer}})
async def start(request: Request, given: AskedBacktest, response: Response) -> BacktestAnswer:
    """Count the kept events that a condition would have matched; 202 if it takes longer."""
    server = request.app.state.server
    asked = BacktestQuestion(**given.model_dump())
    job = await begin_backtest(server, asked, server.caller(request))
    return await run_in_threadpool(_answer, server, job, response)


@router.get("/{id}", responses={202: {"model": BacktestAnswer}})
def show(request: Request, id: str, response: Response) -> BacktestAnswer:
    """A back-test: its result, or 202 with its progress."""
    server = request.app.state.server
    job = server.broker.backtests.job(id, server.caller(request))
    return _answer(server, job, response)


@router.delete("/{id}", status_code=204)
def cancel(request: Request, id: str) -> None:
    """Stop a back-test, and forget it."""
    server = request.app.state.server
    server.broker.backtests.cancel(id, server.caller(request))


async def begin_backtest(server: Any, asked: BacktestQuestion, caller: Caller) -> BacktestJob:
    """Begin a back-test, and wait for its result for a while, without a thread."""
    job: BacktestJob = await server.ask(server.broker.backtests.start, asked, caller)
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(result: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(done.set)

    job.result.add_done_callback(tell)
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), PATIENCE)
    return job


def _answer(server: Any, job: BacktestJob, response: Response) -> BacktestAnswer:
    answer = backtest_answer(server.broker, job)
    if answer.matched is None:
        response.status_code = 202
        response.headers["Location"] = f"/v1/backtest/{job.id}"
        response.headers["Retry-After"] = "1"
    return answer


def backtest_answer(broker: Broker, job: BacktestJob) -> BacktestAnswer:
    """The result of a back-test, or its progress. Raises what it failed with."""
    if not job.result.done():
        return BacktestAnswer(id=job.id, progress=job.done / max(1, job.events), events=job.events)
    found = job.result.result()
    return BacktestAnswer(
        id=job.id,
        progress=1.0,
        events=found.events,
        matched=found.matched,
        dead=found.dead,
        first=found.first,
        end=found.end,
        over_time=[BucketAnswer(**each._asdict()) for each in found.over_time],
        samples=[SampleAnswer(sequence=n, event=_text(broker, n)) for n in found.samples],
    )


def _text(broker: Broker, number: int) -> str | None:
    try:
        return str(stored_event(broker.log, number).text)
    except (NotFoundError, TrimmedError):
        return None
