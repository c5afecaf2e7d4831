"""Large back-tests: on Spark, in a child process, with the result that the broker would find."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import msgspec

from tamis.broker.questions.question_process import question_process
from tamis.errors import BrokerError
from tamis.replay.past.log_backtest import BacktestCancelledError, LogBacktest

_MODULE = "tamis.spark.backtest.log_ranges"


def has_spark() -> bool:
    """Whether the packages for Spark are installed."""
    return find_spec("pyspark") is not None


def backtest_on_spark(question: bytes, progress: Callable[[float], bool]) -> LogBacktest:
    """Run a back-test in a child process.

    `question` is the JSON that the module takes. `progress` is called with the share that is done;
    False ends the child, and its Java with it, with `BacktestCancelledError`.
    """
    share = 0.0

    def look() -> None:
        if not progress(share):
            raise BacktestCancelledError("the back-test was cancelled")

    with question_process(_MODULE) as child:
        child.ask(question)
        for said in child.answers(look):
            if "error" in said:
                raise BrokerError(f"the back-test on Spark has failed: {said['error']}")
            if "result" in said:
                return msgspec.convert(said["result"], LogBacktest)
            share = said["done"] / max(1, said["tasks"])
        raise BrokerError(f"the back-test on Spark has ended: {child.last_words()}")
