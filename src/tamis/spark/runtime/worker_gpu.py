"""Which GPU a task of Spark has."""

from __future__ import annotations

import os

from tamis.match.gpu import GPU_VARIABLE


def use_given_gpu() -> None:
    """Let matchers of this worker use the GPU that Spark gave its task, if Spark gave one.

    Spark numbers the GPUs of a machine as CUDA does. Where a container shows only its own GPUs,
    addresses may be names; then the matcher takes the first that it sees. So it does without
    resources. A variable that is set already stays as it is.
    """
    from pyspark import TaskContext

    task = TaskContext.get()
    given = (task.resources() or {}).get("gpu") if task is not None else None
    if given is not None and given.addresses and given.addresses[0].isdecimal():
        os.environ.setdefault(GPU_VARIABLE, given.addresses[0])
