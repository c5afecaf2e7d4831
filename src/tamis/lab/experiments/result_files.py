"""Result files of experiments: one JSON file for each experiment, whole after each observation.

A file holds what is needed to read its figures later: parameters, seed, commit, versions, machine,
and all raw repetitions. It is replaced in one step, so a process that dies leaves a file without
its last observation, never a damaged one. `gzip -9n` makes it a third as large; a packed file is
read, and continued, like any other.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tamis.errors import TamisError
from tamis.files.atomic import atomic_file
from tamis.files.json_document import check_format, read_object
from tamis.lab.experiments.experiment import (
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
)
from tamis.lab.results.files import construct, machine, origin, versions

FORMAT = 1
_PACKED = ".gz"
_DIGITS = 5  # significant ones of a measured number
ObservationKey = tuple[float | str, str, str, Mode]
"""What one observation is of: x, panel, curve and mode."""


@dataclass(frozen=True)
class LabResult:
    """The content of a result file.

    `seconds` says how long each observation took, and `prepared` how much of that went by before
    its algorithm was asked for: the first one of a step waits for the workload.
    """

    experiment: str
    scale: str
    seed: int
    started: str
    commit: str | None
    dirty: bool | None
    versions: dict[str, str]
    machine: dict[str, Any]
    steps: list[dict[str, Any]]  # all that belong to the experiment, measured or not
    observations: tuple[Observation, ...] = ()
    seconds: tuple[float, ...] = ()
    prepared: tuple[float, ...] = ()
    other_commits: tuple[str, ...] = ()  # of some observations, where mixing them was asked for

    @classmethod
    def begin(cls, experiment: Experiment, scale: LabScale, seed: int) -> LabResult:
        """The content of a new file, without observations."""
        return cls(
            experiment.id,
            str(scale),
            seed,
            datetime.now(UTC).isoformat(timespec="seconds"),
            **origin(),
            versions=versions(),
            machine=machine(),
            steps=described(experiment.steps(scale)),
        )

    @property
    def size(self) -> int:
        """How many observations the whole file has."""
        return sum(len(step["curves"]) for step in self.steps)

    @property
    def whole(self) -> bool:
        return len(self.observations) >= self.size

    @property
    def left_out(self) -> int:
        """How many steps of curves the run left out, over all curves."""
        return sum(each.left_out for each in self.observations)

    def done(self) -> set[ObservationKey]:
        """What has been observed."""
        return {key_of(each) for each in self.observations}

    def observed(self) -> Observations:
        """The observations in the order of the steps, for claims and plots."""
        place = {(step["x"], step["panel"]): at for at, step in enumerate(self.steps)}
        last = len(place)
        return Observations(
            sorted(self.observations, key=lambda each: place.get((each.x, each.panel), last))
        )

    def including(
        self, observation: Observation, seconds: float, prepared: float = 0.0
    ) -> LabResult:
        """With one more observation."""
        return replace(
            self,
            observations=(*self.observations, _rounded(observation)),
            seconds=(*self.seconds, round(seconds, 3)),
            prepared=(*self.prepared, round(prepared, 3)),
        )

    def only(self, kept: Callable[[Observation], bool]) -> LabResult:
        """Without the other observations."""
        rows = zip(self.observations, self.seconds, self.prepared, strict=True)
        found = [row for row in rows if kept(row[0])]
        return replace(
            self,
            observations=tuple(each for each, _, _ in found),
            seconds=tuple(each for _, each, _ in found),
            prepared=tuple(each for _, _, each in found),
        )


def key_of(observation: Observation) -> ObservationKey:
    """What an observation is of."""
    return observation.x, observation.panel, observation.curve, observation.mode


def described(steps: Iterable[LabStep]) -> list[dict[str, Any]]:
    """Steps as a file describes them. Files with equal descriptions may be continued."""
    return [plain(asdict(step)) for step in steps]


def result_path(folder: Path, scale: LabScale, id: str) -> Path:
    """Where the results of an experiment are: in a packed file only if there is one already."""
    path = folder / str(scale) / f"{id}.json"
    packed = path.with_name(f"{path.name}{_PACKED}")
    return packed if packed.exists() and not path.exists() else path


def picture_path(path: Path, kind: str) -> Path:
    """Where the picture of a result file is, by its format."""
    return path.with_name(f"{path.name.removesuffix(_PACKED).removesuffix('.json')}.{kind}")


def result_files(folder: Path) -> list[Path]:
    """The result files in a folder and those below. Of a file and its packed form, the former."""
    packed = {path.with_suffix(""): path for path in folder.rglob(f"*.json{_PACKED}")}
    plain_ones = {path: path for path in folder.rglob("*.json")}
    return [path for _, path in sorted({**packed, **plain_ones}.items())]


def write_result(path: Path, result: LabResult) -> None:
    """Replace a result file. It has a line for each step and for each observation."""
    lists = {
        "steps": result.steps,
        "observations": [
            {**plain(asdict(each)), "seconds": seconds, "prepared": prepared}
            for each, seconds, prepared in zip(
                result.observations, result.seconds, result.prepared, strict=True
            )
        ],
    }
    times = ("seconds", "prepared")  # of an observation, and in its line
    rest = {name: each for name, each in vars(result).items() if name not in (*lists, *times)}
    head = json.dumps(plain({"format": FORMAT, **rest}), indent=1, ensure_ascii=False)
    parts = [head.removesuffix("\n}")]
    for name, rows in lists.items():
        lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in rows)
        parts.append(f' "{name}": [\n{lines}\n ]')
    written = (",\n".join(parts) + "\n}\n").encode()
    with atomic_file(path) as file:
        file.write(gzip.compress(written, mtime=0) if path.suffix == _PACKED else written)


def read_result(path: Path) -> LabResult:
    """The content of a result file; refuses a file that is damaged or of another kind."""
    try:
        document = read_object(path, TamisError)
    except FileNotFoundError:
        raise TamisError(f"{path} does not exist; tamis lab run writes it") from None
    except OSError as why:
        raise TamisError(f"{path} cannot be read: {why.strerror}") from None
    check_format(path, document.pop("format", None), FORMAT, TamisError)
    try:
        found = document.pop("observations")
        seconds = tuple(float(each.pop("seconds")) for each in found)
        prepared = tuple(float(each.pop("prepared", 0.0)) for each in found)
        document["other_commits"] = tuple(document["other_commits"])
        made = construct(LabResult, "result", document)
        for step in made.steps:  # what the rest of the lab reads
            _ = step["x"], step["panel"], [(each["name"], each["mode"]) for each in step["curves"]]
        return replace(
            made,
            observations=tuple(_observation(each) for each in found),
            seconds=seconds,
            prepared=prepared,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as why:
        raise TamisError(
            f"{path} is not a result file of this version of tamis lab: {why}"
        ) from None


def read_results(folder: Path, scale: LabScale) -> dict[str, LabResult]:
    """All result files of a scale, by the id of their experiment."""
    place = folder / str(scale)
    found = [read_result(path) for path in result_files(place)]
    if not found:
        raise TamisError(
            f"{place} has no result files; tamis lab run all --scale {scale} writes them"
        )
    return {each.experiment: each for each in found}


def plain(value: Any) -> Any:
    """A value in the types of JSON, so that it is the same after it was written and read."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, str):
        return str(value)  # not an enumeration
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TamisError(f"a result file cannot hold {value!r}; give numbers, texts, lists and dicts")


def _rounded(observation: Observation) -> Observation:
    where = f"{observation.curve} at {observation.x}"
    return replace(
        observation,
        measured={
            name: [_round(each, f"{name} of {where}") for each in values]
            for name, values in observation.measured.items()
        },
        counts={
            name: _round(value, f"{name} of {where}") for name, value in observation.counts.items()
        },
    )


def _round(value: float, what: str) -> float:
    if not math.isfinite(value):
        raise TamisError(f"{what} is {value}, not a number")
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _observation(given: dict[str, Any]) -> Observation:
    made = construct(Observation, "observation", {**given, "mode": Mode(given["mode"])})
    for name, values in made.measured.items():
        if not isinstance(values, list) or not all(map(_is_number, values)):
            raise TypeError(f"{name} of an observation is {values!r}")
    for name, value in made.counts.items():
        if not _is_number(value):
            raise TypeError(f"{name} of an observation is {value!r}")
    return made


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
