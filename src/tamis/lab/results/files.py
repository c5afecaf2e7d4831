"""Result files: results with everything needed to read them later."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tamis.errors import TamisError
from tamis.files.json_document import write_json
from tamis.lab.results.records import KINDS, Result

_LIBRARIES = ("tamis", "numpy", "numba", "pyarrow")
_PACKAGE = Path(__file__).resolve().parents[2]
_Kind = TypeVar("_Kind")


def machine() -> dict[str, Any]:
    """Facts about the machine that explain a figure. Nothing names the machine."""
    return {
        "cpus": os.cpu_count(),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of tamis and of the libraries below it."""
    return {name: version(name) for name in _LIBRARIES}


@cache
def origin() -> Mapping[str, Any]:
    """The commit of tamis, and whether its checkout differs from it; None outside a checkout.

    As of the first call: later changes are not in the code that runs.
    """
    return MappingProxyType(_origin(_PACKAGE))


def prepare(folder: Path) -> None:
    """Make the folder of the result files, and refuse one that cannot be written to.

    Call it before measuring, which takes minutes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as why:
        raise TamisError(f"results cannot be written to {folder}: {why.strerror}") from None


def write(
    folder: Path, results: Sequence[Result], parameters: dict[str, Any], started: datetime
) -> Path:
    """Write a new result file, named by its start time; gives its path."""
    document = {
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        **origin(),
        "parameters": parameters,
        "versions": versions(),
        "machine": machine(),
        "results": [{"kind": _KIND_OF[type(each)], **asdict(each)} for each in results],
    }
    prepare(folder)
    path = _reserve(folder, f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    write_json(path, document, indent=2)
    return path


def read(path: Path) -> list[Result]:
    """The results in a file of `write`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as why:
        raise TamisError(f"{path} cannot be read: {why.strerror}") from None
    except (ValueError, RecursionError) as why:
        raise TamisError(f"{path} is not a result file of tamis bench: {why}") from None
    found = document.get("results") if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise TamisError(f"{path} is not a result file of tamis bench: it has no list of results")
    try:
        return [_result(each) for each in found]
    except (TypeError, ValueError) as why:
        raise TamisError(f"{path} is not a result file of this version of tamis: {why}") from None


_KIND_OF: dict[type, str] = {kind: name for name, kind in KINDS.items()}


def _result(given: Any) -> Result:
    if not isinstance(given, dict):
        raise TypeError("a result is not an object")
    name = str(given.get("kind"))
    if name not in KINDS:
        raise ValueError(f"there is no kind of result {given.get('kind')!r}")
    fields = {name: value for name, value in given.items() if name != "kind"}
    return construct(KINDS[name], name, fields)


def construct(kind: type[_Kind], title: str, fields: Mapping[str, Any]) -> _Kind:
    """A record with these fields. Their types are checked."""
    hints = get_type_hints(kind)
    made = kind(**{name: _nested(value, hints.get(name)) for name, value in fields.items()})
    for name, hint in hints.items():
        if not _has_type(getattr(made, name), hint):
            raise TypeError(f"{name} of a {title} is {getattr(made, name)!r}")
    return made


def _nested(value: Any, hint: Any) -> Any:
    """The value, as a record if the hint is one."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = next((each for each in kinds if is_dataclass(each)), None)
    if isinstance(kind, type) and isinstance(value, dict):
        return construct(kind, kind.__name__.lower(), value)
    return value


def _has_type(value: object, hint: Any) -> bool:
    if get_origin(hint) is UnionType:
        return any(_has_type(value, each) for each in get_args(hint))
    if hint is float:  # JSON has one type of number
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, get_origin(hint) or hint)


def _reserve(folder: Path, stem: str) -> Path:
    """Create an empty file with a new name. Two runs may start within one second."""
    for number in count(1):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise AssertionError("numbers do not end")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _origin(package: Path) -> dict[str, Any]:
    """The commit of the package, and whether the checkout differs from it.

    Both are None outside a checkout, and for a package that is installed inside another checkout:
    git would answer with the commit of that one.
    """
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(package, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(package, "status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def _git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()
