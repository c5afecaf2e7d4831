"""Result files: figures with everything that is needed to read them later."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tamis.lab.timing import Sample

_LIBRARIES = ("tamis", "numpy", "numba", "pyarrow")


@dataclass(frozen=True)
class Goal:
    """What a figure should reach."""

    limit: float
    at_most: bool

    def met(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True)
class Figure:
    """One measured number. `low` and `high` are the extremes of the repeats."""

    measurement: str
    what: str
    value: float
    unit: str
    low: float
    high: float
    repeats: int
    goal: Goal | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def seconds(
        cls,
        measurement: str,
        what: str,
        sample: Sample,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """How long something took."""
        s = sample
        return cls(measurement, what, s.seconds, "s", s.low, s.high, s.repeats, goal, parameters)

    @classmethod
    def rate(
        cls,
        measurement: str,
        what: str,
        sample: Sample,
        count: int,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """How many of `count` things a second; the slowest repeat is the lowest rate."""
        value, low, high = (count / s for s in (sample.seconds, sample.high, sample.low))
        return cls(measurement, what, value, "/s", low, high, sample.repeats, goal, parameters)


@dataclass(frozen=True)
class Contest:
    """One matcher on one workload. Times are milliseconds an event, without encoding."""

    measurement: str
    workload: str
    matcher: str
    subscriptions: int
    alone_ms: float
    batch_ms: float
    batch: int  # events at once; fewer than asked for where the matcher is slow
    events_alone: int
    matches: float  # subscriptions an event matched, in the mean
    alone_times: float  # how many times faster than the yardstick in the same run
    batch_times: float
    add_us: float | None = None
    remove_us: float | None = None
    bytes_each: float | None = None
    build_s: float | None = None  # all clauses in one add, and the first match
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A matcher that does not take a workload, and what it says."""

    measurement: str
    workload: str
    matcher: str
    why: str


Result = Figure | Contest | Refusal


def machine() -> dict[str, Any]:
    """The facts about the machine that explain a figure; nothing that names it."""
    return {
        "cpus": os.cpu_count(),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of what was measured and of what it stands on."""
    return {name: version(name) for name in _LIBRARIES}


def write(
    folder: Path, results: Sequence[Result], parameters: dict[str, Any], started: datetime
) -> Path:
    """Write a result file named after the moment it began; gives its path."""
    document = {
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "parameters": parameters,
        "versions": versions(),
        "machine": machine(),
        "results": [{"kind": type(each).__name__.lower(), **asdict(each)} for each in results],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _commit() -> str | None:
    """The commit that the package was run from; None outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
