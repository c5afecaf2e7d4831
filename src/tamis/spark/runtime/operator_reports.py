"""Calls and faults of operators in all workers of a job.

Each worker process has an engine, which counts for itself (`Engine.report`). A task of a job can
return its part. The tasks of a stream return rows alone, so each process keeps its counts in a
file of one folder, and `report` adds them up.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError
from tamis.files.atomic import atomic_file
from tamis.files.names import own_files
from tamis.operators.report import FAULTY, CallCounts, ConstantFaults, Report

if TYPE_CHECKING:
    from tamis.engine import Engine

NOTHING = Report(())
_ADDED = (
    "events",
    "calls",
    "seconds",
    "hits",
    "misses",
    "raised",
    "refused",
    "timeouts",
    "nonsense",
    "set_aside",
)
_ENDING = ".json"

_noted: dict[tuple[int, str], tuple[Path, Report]] = {}  # by process and folder


def report(folder: str | os.PathLike[str]) -> Report:
    """Calls and faults of operators, as workers noted them in a folder.

    It is the folder that was given to `match`, or to `format("tamis")`, as `report`.
    """
    found = []
    for path in sorted(Path(folder).glob(f"[!.]*{_ENDING}")):
        with suppress(FileNotFoundError):  # cleared meanwhile
            found.append((path.stat().st_mtime_ns, _read(path)))
    return total(each for _, each in sorted(found, key=lambda pair: pair[0]))


def total(reports: Iterable[Report]) -> Report:
    """The sum of reports. The last fault is that of the last report with one."""
    counts: dict[str, CallCounts] = {}
    given_up = 0
    ignored: Counter[str] = Counter()
    for each in reports:
        given_up += each.given_up
        ignored.update(each.ignored)
        for count in each:
            known = counts.get(count.operator, CallCounts(count.operator))
            last = count.last or known.last
            counts[count.operator] = replace(_plus(known, count), last=last)
    return replace(Report.of(counts.values()), given_up=given_up, ignored=dict(ignored))


def total_of(documents: Iterable[str]) -> Report:
    """The total of reports that `report_json` wrote."""
    return total(read_report(json.loads(each)) for each in documents)


def since(before: Report, now: Report) -> Report:
    """The difference of two reports of the same engines."""
    counts = []
    for count in now:
        fresh = _plus(CallCounts(count.operator), count)
        fresh = _plus(fresh, before[count.operator], -1)
        if fresh.events or fresh.calls:
            counts.append(replace(fresh, last=count.last if fresh.faults else None))
    ignored = Counter(now.ignored) - Counter(before.ignored)
    given_up = now.given_up - before.given_up
    return replace(Report.of(counts), given_up=given_up, ignored=dict(ignored))


def _plus(one: CallCounts, other: CallCounts, sign: int = 1) -> CallCounts:
    added = {name: getattr(one, name) + sign * getattr(other, name) for name in _ADDED}
    constants = dict(one.constants)
    for call, each in other.constants.items():
        known = constants.get(call, ConstantFaults())
        faults = known.faults + sign * each.faults
        last = each.last or known.last if sign > 0 else known.last
        constants[call] = ConstantFaults(faults, last)
    worst = sorted(constants.items(), key=lambda each: -each[1].faults)
    kept = {call: each for call, each in worst[:FAULTY] if each.faults > 0}
    return replace(one, **added, constants=kept)


class CallCount:
    """Counts the calls of engines' operators, from when it is made."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._before = self._now()

    def _now(self) -> Report:
        return total(each.report() for each in self._engines)

    def report(self) -> Report:
        return since(self._before, self._now())


@contextmanager
def noted_calls(engines: Sequence[Engine], folder: str | None) -> Iterator[None]:
    """Calls of operators in this block are noted in a folder, if one is given."""
    count = CallCount(engines)
    try:
        yield
    finally:
        fresh = count.report()
        if folder is not None and (len(fresh) or fresh.given_up or fresh.ignored):
            _note(folder, fresh)


def _note(folder: str, fresh: Report) -> None:
    key = (os.getpid(), folder)
    if key not in _noted:
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
        _noted[key] = (Path(folder) / name, NOTHING)
    path, known = _noted[key]
    _noted[key] = (path, total([known, fresh]))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, durable=False) as file:
            file.write(report_json(_noted[key][1]).encode())
    except OSError as why:
        raise SparkError(
            f"{folder}: a worker cannot note the calls of operators there: {why.strerror}"
        ) from None


def clear(folder: Path) -> None:
    """Remove all notes; no job may be running."""
    for path in own_files(folder, f"*{_ENDING}"):
        path.unlink(missing_ok=True)


def report_json(given: Report) -> str:
    return json.dumps(report_document(given))


def report_document(given: Report) -> dict[str, Any]:
    """A report as a JSON document, without values of the moment."""
    counts = [asdict(replace(each, set_aside_for=None)) for each in total([given])]
    return {"operators": counts, "given_up": given.given_up, "ignored": dict(given.ignored)}


def read_report(given: Mapping[str, Any]) -> Report:
    """The report that `report_document` wrote."""
    counts = []
    for each in given["operators"]:
        faulty = {call: ConstantFaults(**one) for call, one in each.get("constants", {}).items()}
        counts.append(CallCounts(**{**each, "constants": faulty}))
    ignored = {str(name): int(many) for name, many in given.get("ignored", {}).items()}
    return replace(Report.of(counts), given_up=int(given["given_up"]), ignored=ignored)


def _read(path: Path) -> Report:
    try:
        return read_report(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as why:
        raise SparkError(f"{path}: is not a report of a worker: {why}") from None
