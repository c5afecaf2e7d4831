"""The verbs of gRPC that ask: about conditions, events, back-tests and operators."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import ValidationError

from tamis.broker.access.caller import ADMIN, PUBLISHER, SUBSCRIBER
from tamis.broker.questions.backtests import BacktestQuestion
from tamis.errors import BrokerError
from tamis.language.dialects import NATIVE
from tamis.service.routes.backtest_routes import (
    AskedBacktest,
    backtest_answer,
    begin_backtest,
)
from tamis.service.routes.operator_routes import operators_answer
from tamis.service.routes.question_routes import MATCHES
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context
from tamis.service.rpc.verb_group import VerbGroup, given


class QuestionVerbs(VerbGroup):
    """Check, explain, dry runs, back-tests, operators."""

    async def check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        (await self._caller(context)).require(SUBSCRIBER)
        language = given(request, "language") or NATIVE
        await asyncio.to_thread(self._broker.check, request.condition, language)
        return pb.CheckResponse()

    async def explain(self, request: pb.ExplainRequest, context: Context) -> pb.ExplainResponse:
        (await self._caller(context)).require(SUBSCRIBER)
        event = messages.json_object(request.event, "event")
        language = given(request, "language") or NATIVE
        found = await self._server.ask(self._broker.explain, request.condition, event, language)
        return pb.ExplainResponse(matches=found.holds, explanation=str(found))

    async def match(self, request: pb.MatchRequest, context: Context) -> pb.MatchResponse:
        caller = await self._caller(context)
        caller.require(PUBLISHER)
        event = messages.json_object(request.event, "event")
        found = await self._server.ask(self._broker.dry_run, event, caller)
        return pb.MatchResponse(subscriptions=map(str, found[:MATCHES]), count=len(found))

    async def start_backtest(
        self, request: pb.StartBacktestRequest, context: Context
    ) -> pb.Backtest:
        asked, caller = _question(request), await self._caller(context)
        job = await begin_backtest(self._server, asked, caller)
        return await asyncio.to_thread(self._backtest, job)

    async def show_backtest(self, request: pb.ShowBacktestRequest, context: Context) -> pb.Backtest:
        caller = await self._caller(context)
        return await asyncio.to_thread(
            lambda: self._backtest(self._broker.backtests.job(request.id, caller))
        )

    async def cancel_backtest(
        self, request: pb.CancelBacktestRequest, context: Context
    ) -> pb.CancelBacktestResponse:
        self._broker.backtests.cancel(request.id, await self._caller(context))
        return pb.CancelBacktestResponse()

    def _backtest(self, job: Any) -> pb.Backtest:
        return messages.backtest_of(backtest_answer(self._broker, job))

    async def operators(
        self, request: pb.OperatorsRequest, context: Context
    ) -> pb.OperatorsResponse:
        (await self._caller(context)).require(ADMIN)
        found = await asyncio.to_thread(operators_answer, self._broker)
        return pb.OperatorsResponse(json=found.model_dump_json().encode())


def _question(request: pb.StartBacktestRequest) -> BacktestQuestion:
    """What to test, by the rules of HTTP."""
    asked: dict[str, Any] = {"condition": request.condition}
    for name in ("language", "first", "end", "samples", "buckets"):
        if request.HasField(name):
            asked[name] = getattr(request, name)
    for name in ("since", "until"):
        if request.HasField(name):
            asked[name] = messages.moment_of(getattr(request, name), name)
    try:
        return BacktestQuestion(**AskedBacktest(**asked).model_dump())
    except ValidationError as why:
        found = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in why.errors())
        raise BrokerError(found) from None
