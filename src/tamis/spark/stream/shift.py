"""The shift of a stream that matches for a service.

The stream writes into the data folder of the service, from the sequence number on at which its
shift begins. It commits a batch only while its shift lasts, and only where the files end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamis.errors import SparkError
from tamis.replay.coverage import coverage
from tamis.replay.manifests import COVERS, MANIFESTS
from tamis.replay.matching_shifts import SPARK, MatchingShifts, Shift
from tamis.spark.stream.checkpoint import last_batch, mend_checkpoint, read_end
from tamis.store.log import Log


def spark_shift(shifts: MatchingShifts) -> Shift:
    """The shift of Spark in a data folder; raises `SparkError` if another one matches.

    If the checkpoint and the notifications do not go together, as one of them was lost or put back,
    a new shift begins where the notifications end.
    """
    log, shift = Log.open(shifts.log), shifts.current()
    shifts.check_log(log)
    if shift is None or shift.matching != SPARK:
        who = "nobody" if shift is None else f"the service itself ({shift.matching})"
        raise SparkError(
            f"{shifts.folder}: {who} matches here; let Spark match from now on with `tamis "
            f"switch-matching {shifts.folder} spark`"
        )
    checkpoint = shifts.checkpoint(shift)
    mend_checkpoint(checkpoint, shifts.out)
    reached = max(coverage(shifts.out, log.begin).end, log.begin)
    if shifts.is_whole(log, shift) and reached in _ends(checkpoint, shift):
        return shift
    return shifts.begin(log, SPARK)


def _ends(checkpoint: Path, shift: Shift) -> set[int]:
    """Where the notifications may end, by the checkpoint: after its last batch.

    Or before that one, if Spark has not committed it: then it is run again.
    """
    last, committed = last_batch(checkpoint)
    return {_end(checkpoint, each, shift) for each in ((last,) if committed else (last, last - 1))}


def _end(checkpoint: Path, batch: int, shift: Shift) -> int:
    """Where a batch ends; before the first one, the shift begins."""
    if batch < 0:
        return shift.start
    _, (offset,) = read_end(checkpoint, batch)
    return int(json.loads(offset)["sequence"])


@contextmanager
def committing_shift(
    out: Path, name: str, checkpoint: Path, batch: int, manifest: str
) -> Iterator[dict[str, Any]]:
    """Commit a batch during the block; gives what its manifest covers."""
    shifts = MatchingShifts(out.parent)
    with shifts.held(name):
        shift = shifts.current()
        assert shift is not None
        start = _end(checkpoint, batch - 1, shift)
        if not (out / MANIFESTS / f"{manifest}.json").exists():
            begin = Log.open(shifts.log).begin
            reached = max(coverage(out, begin).end, begin)
            if reached != start:
                raise SparkError(
                    f"{out}: ends at {reached:,}, and batch {batch} begins at {start:,}; start "
                    "`tamis spark run` again, which goes on from where the files end"
                )
        yield {COVERS: {"start": start, "end": _end(checkpoint, batch, shift)}}
