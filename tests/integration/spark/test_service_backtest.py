"""Back-tests that the service starts on Spark: the same result as its own."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tamis.broker.questions.backtests import BacktestQuestion, Backtests
from tamis.broker.questions.spark_backtest import backtest_on_spark
from tamis.errors import BrokerError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.past.log_backtest import BacktestCancelledError
from tests.unit.broker.test_backtests import ANALYST, filled

pytestmark = pytest.mark.slow


def test_spark_finds_what_the_service_finds(tmp_path: Path) -> None:
    broker, events = filled(tmp_path, random.Random(7))
    with broker:
        large = Backtests(broker.log, EnabledOperators(), most=5)
        asked = BacktestQuestion("price < 5 or size > 4", first=min(events) + 3, samples=3)
        job = large.start(asked, ANALYST)
        assert large.job(job.id, ANALYST) is job
        own = broker.backtests.start(asked, ANALYST).result.result(60)
        assert own.matched > 0
        assert job.result.result(300) == own
        assert job.done == job.events == own.events
        stopped = large.start(asked, ANALYST)
        large.cancel(stopped.id, ANALYST)
        with pytest.raises(BacktestCancelledError):
            stopped.result.result(60)
        large.stop()


def test_a_failure_of_the_child_is_told(tmp_path: Path) -> None:
    question = [str(tmp_path / "nowhere"), "price < 5", "tamis", [], 0, 0, 9, 60, 5]
    with pytest.raises(BrokerError, match=r"has failed: .*nowhere"):
        backtest_on_spark(msgspec.json.encode(question), lambda share: True)
    with pytest.raises(BrokerError, match=r"has ended: .*Error"):
        backtest_on_spark(b"[]", lambda share: True)
