"""Compile the live subscriptions of a log into a version, so that a start need not parse them.

    python -m tamis.broker.matching.compile_version LOG INDEX SEQUENCE OPERATORS

The broker runs this in a child process: it takes memory and a core for seconds, and the broker goes
on meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tamis.broker.matching.log_engine import LEFT_OUT, OPERATORS, LogEngine
from tamis.errors import BrokerError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.store.log import Log
from tamis.store.subscription_snapshot import Id
from tamis.store.version import OF, Shard, Version, describe
from tamis.store.versions import Versions

_SHARD = "shard-0000"
_NICE = 10  # the broker comes first


def compile_version(
    log: Log, index: Path, sequence: int, operators: EnabledOperators | None = None
) -> Version:
    """Publish the version of a sequence number, and return it."""
    follower = LogEngine.at(log, index, sequence, operators)
    left_out: dict[str, list[Id]] = {}
    for id, reason in follower.left_out.items():
        left_out.setdefault(reason, []).append(id)
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
            made={
                OF: log.identity,
                "refused": len(follower.left_out),
                LEFT_OUT: left_out,
                OPERATORS: sorted(operators or ()),
            },
        )
    found = versions.at(sequence)
    if found is None or found.sequence != sequence:
        raise BrokerError(f"{index}: the version of {sequence} was not published")
    return found


def compile_in_child(
    log: Log,
    index: Path,
    sequence: int,
    stopping: Callable[[], bool] = lambda: False,
    operators: Iterable[str] = (),
) -> None:
    """Publish the version of a sequence number from another process, unless it has to stop.

    `operators` are the entries of `EnabledOperators`: the process loads them itself.
    """
    given = [str(log.folder), str(index), str(sequence), ",".join(operators)]
    command = [sys.executable, "-m", __name__, *given]
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
    named = EnabledOperators.named([sys.argv[4]])
    compile_version(Log.open(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), named)
