"""Spark's start, which takes a minute, ends soon after Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.cli.demo import spark_handover
from tamis.cli.demo.spark_handover import SparkHandover
from tamis.spark.jobs import compile_index
from tamis.spark.runtime import quiet_session, sessions


class _Warmup:
    """Compiles nothing."""

    def __init__(self, output: Path) -> None:
        self.wait = self.stop = lambda: None


class _Session:
    version = "4"

    def interruptTag(self, tag: str) -> None:  # noqa: N802 - the name in Spark
        pass


@pytest.mark.parametrize("during", ["starting Spark", "compiling loops for Spark's workers"])
def test_no_further_step_begins_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    done: list[str] = []

    def compiled(*given: Any) -> None:
        done.append("compiled")

    def started(*given: Any, **more: Any) -> _Session:
        interrupt_in("starting Spark")
        return _Session()

    def interrupt_in(step: str) -> None:
        done.append(step)
        if step == during:
            handover.interrupt()

    monkeypatch.setattr(spark_handover, "KernelWarmup", _Warmup)
    monkeypatch.setattr(quiet_session, "quiet_session", started)
    monkeypatch.setattr(compile_index, "compile_log", compiled)
    monkeypatch.setattr(sessions, "end", lambda session: done.append("ended"))
    handover = SparkHandover(tmp_path, (), None, lambda seconds: True, lambda line, took: None)
    compiling = "compiling loops for Spark's workers"
    monkeypatch.setattr(handover._warmup, "wait", lambda: interrupt_in(compiling))
    handover.run()
    handover.stop()
    assert done[-2:] == [during, "ended"]
    assert handover.failure is None
