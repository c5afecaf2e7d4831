"""Which GPU a task has: by what Spark says of it."""

from __future__ import annotations

import os

import pytest
from pyspark import TaskContext
from pyspark.resource import ResourceInformation

from tamis.spark.runtime.worker_gpu import use_given_gpu


@pytest.mark.parametrize(
    ("addresses", "before", "after"),
    [
        (["3"], None, "3"),
        (["3"], "1", "1"),
        (["GPU-5f3c"], None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_the_gpu_of_the_task_is_used(
    addresses: list[str] | None,
    before: str | None,
    after: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TAMIS_GPU", "")
    monkeypatch.delenv("TAMIS_GPU")
    if before is not None:
        monkeypatch.setenv("TAMIS_GPU", before)
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # the next one is that of the task
    task = TaskContext()
    task._resources = {} if addresses is None else {"gpu": ResourceInformation("gpu", addresses)}
    use_given_gpu()
    assert os.environ.get("TAMIS_GPU") == after


def test_outside_of_a_task_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAMIS_GPU")
    use_given_gpu()
    assert "TAMIS_GPU" not in os.environ
