"""The report on operators, for admins."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request

from tamis.broker.access.caller import ADMIN
from tamis.broker.broker import Broker
from tamis.operators.operator import Operator
from tamis.operators.report import CallCounts
from tamis.service.observation.operator_readings import FAULTS
from tamis.store.subscription_snapshot import Id

router = APIRouter(prefix="/v1/operators", tags=["operators"])
_IDS = 10  # subscriptions that are listed for a reason


class ShownPause(BaseModel):
    """Whether calls are made now."""

    set_aside: bool
    for_seconds: float | None = Field(
        description="until it is tried again; null while it waits for a call to return"
    )


class ShownConstants(ShownPause):
    """Calls with certain constants that had faults."""

    call: str
    faults: int
    last: str | None


class ShownOperator(ShownPause):
    """An operator, and what became of its calls since the start."""

    name: str
    reads: list[str]
    run: str
    timeout: float | None = Field(description="in seconds; null if it runs in the matching thread")
    events: int
    calls: int
    seconds: float
    remembered: int = Field(description="events that were answered by an earlier result")
    faults: dict[str, int]
    last: str | None = Field(description="the reason of the last fault")
    constants: list[ShownConstants]


class LeftOut(BaseModel):
    """Live subscriptions that are not matched."""

    reason: str
    subscriptions: int
    ids: list[int | str] = Field(description=f"the first {_IDS}")


class OperatorsAnswer(BaseModel):
    operators: list[ShownOperator]
    results: int = Field(description="rows of remembered results")
    given_up: int = Field(description="clauses whose calls returned too many rows to join")
    left_out: list[LeftOut]


@router.get("")
def list_operators(request: Request) -> OperatorsAnswer:
    """The operators that are enabled, their calls and faults, and what is not matched."""
    server = request.app.state.server
    server.caller(request).require(ADMIN)
    return operators_answer(server.broker)


def operators_answer(broker: Broker) -> OperatorsAnswer:
    """What admins are told about operators."""
    matching = broker.matching
    report = matching.report()
    enabled = broker.operators
    return OperatorsAnswer(
        operators=[_shown(enabled[name], report[name]) for name in sorted(enabled)],
        results=report.remembered,
        given_up=report.given_up,
        left_out=_by_reason(matching.left_out.items()),
    )


def _shown(operator: Operator, count: CallCounts) -> ShownOperator:
    return ShownOperator(
        name=operator.name,
        reads=list(operator.signature.reads),
        run=operator.run,
        timeout=None if operator.run == "here" else operator.timeout,
        events=count.events,
        calls=count.calls,
        seconds=count.seconds,
        remembered=count.hits,
        faults={kind: getattr(count, kind) for kind in FAULTS},
        last=count.last,
        constants=[
            ShownConstants(
                call=call,
                faults=each.faults,
                last=each.last,
                set_aside=each.set_aside_for is not None,
                for_seconds=_finite(each.set_aside_for),
            )
            for call, each in count.constants.items()
        ],
        set_aside=count.set_aside_for is not None,
        for_seconds=_finite(count.set_aside_for),
    )


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _by_reason(left_out: Iterable[tuple[Id, str]]) -> list[LeftOut]:
    found: dict[str, list[Id]] = {}
    for id, reason in left_out:
        found.setdefault(reason, []).append(id)
    return [
        LeftOut(reason=reason, subscriptions=len(ids), ids=ids[:_IDS])
        for reason, ids in sorted(found.items())
    ]
