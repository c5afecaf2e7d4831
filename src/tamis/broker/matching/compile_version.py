"""Compile the live subscriptions of a log into a version, so that a start need not parse them.

    python -m tamis.broker.matching.compile_version LOG INDEX SEQUENCE

The broker runs this in a child process: it takes memory and a core for seconds, and the broker goes
on meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tamis.broker.matching.log_engine import LogEngine
from tamis.errors import BrokerError
from tamis.store.log import Log
from tamis.store.version import OF, Shard, Version, describe
from tamis.store.versions import Versions

_SHARD = "shard-0000"
_NICE = 10  # the broker comes first


def compile_version(log: Log, index: Path, sequence: int) -> Version:
    """Publish the version of a sequence number, and return it."""
    follower = LogEngine.at(log, index, sequence)
    versions = Versions(index)
    with versions.publish(sequence) as draft:
        follower.engine.save(draft / _SHARD)
        size = sum(each.stat().st_size for each in (draft / _SHARD).rglob("*") if each.is_file())
        describe(
            draft,
            sequence=sequence,
            schema=follower.engine.schema.to_dict(),
            ids=log.ids,
            shards=[Shard(_SHARD, len(follower.engine), size)],
            made={OF: log.identity, "refused": follower.refused},
        )
    found = versions.at(sequence)
    if found is None or found.sequence != sequence:
        raise BrokerError(f"{index}: the version of {sequence} was not published")
    return found


def compile_in_child(
    log: Log, index: Path, sequence: int, stopping: Callable[[], bool] = lambda: False
) -> None:
    """Publish the version of a sequence number from another process, unless it has to stop."""
    command = [sys.executable, "-m", __name__, str(log.folder), str(index), str(sequence)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        errors = ""
        while child.returncode is None:
            try:
                _, errors = child.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                if stopping():
                    child.kill()
    if child.returncode:
        lines = errors.strip().splitlines() or [f"exit code {child.returncode}"]
        raise BrokerError(f"{index}: the version of {sequence} was not compiled: {lines[-1]}")


if __name__ == "__main__":
    os.nice(_NICE)
    compile_version(Log.open(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
