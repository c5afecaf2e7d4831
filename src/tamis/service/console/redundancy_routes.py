"""Routes of the redundancy report on the live subscriptions, for admins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request

from tamis.broker.questions.redundancy_reports import RedundancyJob, RedundancyReports
from tamis.errors import TamisError
from tamis.service.console.session_routes import PREFIX, signed_in_caller

router = APIRouter(prefix=f"{PREFIX}/redundancy", include_in_schema=False)


class RedundancyAnswer(BaseModel):
    """A report, or how far it is. Before the first one there is neither."""

    began: datetime | None = None
    running: bool = False
    step: str | None = None
    done: int = 0  # of a step, which has `total`
    total: int = 0
    error: str | None = None
    report: dict[str, Any] | None = None


@router.post("")
def start(request: Request) -> RedundancyAnswer:
    """Begin a report. If one is being made, that is it."""
    caller, reports = signed_in_caller(request), _reports(request)
    return _answer(reports.start(caller))


@router.get("")
def show(request: Request) -> RedundancyAnswer:
    """The report that is made, or the last one."""
    caller, reports = signed_in_caller(request), _reports(request)
    job = reports.job(caller)
    return RedundancyAnswer() if job is None else _answer(job)


@router.delete("", status_code=204)
def cancel(request: Request) -> None:
    """Stop the report that is made."""
    caller, reports = signed_in_caller(request), _reports(request)
    reports.cancel(caller)


def _reports(request: Request) -> RedundancyReports:
    found: RedundancyReports = request.app.state.server.broker.redundancy
    return found


def _answer(job: RedundancyJob) -> RedundancyAnswer:
    answer = RedundancyAnswer(began=datetime.fromtimestamp(job.began / 1e6, UTC))
    if not job.result.done():
        answer.running, answer.step = True, job.step
        answer.done, answer.total = job.done, job.total
        return answer
    why = job.result.exception()
    if why is None:
        answer.report = job.result.result()
    else:
        answer.error = str(why) if isinstance(why, TamisError) else "the report has failed"
    return answer
