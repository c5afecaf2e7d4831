"""Result files: figures with everything that is needed to read them later."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tamis.errors import TamisError
from tamis.files.json_document import write_json
from tamis.lab.records import Result

_LIBRARIES = ("tamis", "numpy", "numba", "pyarrow")
_PACKAGE = Path(__file__).resolve().parent.parent
_Kind = TypeVar("_Kind")


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


def prepare(folder: Path) -> None:
    """Make the folder of the result files, and refuse one that cannot be written to.

    For use before measuring: minutes of work must not end in an answer that has no place to go.
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
    """Write a result file named after the moment it began, and no other file over; its path."""
    document = {
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        **_origin(_PACKAGE),
        "parameters": parameters,
        "versions": versions(),
        "machine": machine(),
        "results": [{"kind": type(each).__name__.lower(), **asdict(each)} for each in results],
    }
    prepare(folder)
    path = _reserved(folder, f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    write_json(path, document, indent=2)
    return path


def read(path: Path) -> list[Result]:
    """The results of a file that `write` wrote."""
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


_KINDS: dict[str, type[Result]] = {kind.__name__.lower(): kind for kind in get_args(Result)}


def _result(given: Any) -> Result:
    if not isinstance(given, dict):
        raise TypeError("a result is not an object")
    kind = _KINDS.get(str(given.get("kind")))
    if kind is None:
        raise ValueError(f"there is no kind of result {given.get('kind')!r}")
    return _made(kind, {name: value for name, value in given.items() if name != "kind"})


def _made(kind: type[_Kind], fields: Mapping[str, Any]) -> _Kind:
    """An instance with these fields, of the types that it declares."""
    hints = get_type_hints(kind)
    made = kind(**{name: _record(value, hints.get(name)) for name, value in fields.items()})
    for name, hint in hints.items():
        if not _is(getattr(made, name), hint):
            raise TypeError(f"{name} of a {kind.__name__.lower()} is {getattr(made, name)!r}")
    return made


def _record(value: Any, hint: Any) -> Any:
    """A record within a record, where one is meant; anything else as it is."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = next((each for each in kinds if is_dataclass(each)), None)
    return _made(kind, value) if isinstance(kind, type) and isinstance(value, dict) else value


def _is(value: object, hint: Any) -> bool:
    if get_origin(hint) is UnionType:
        return any(_is(value, each) for each in get_args(hint))
    if hint is float:  # JSON has one kind of number
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, get_origin(hint) or hint)


def _reserved(folder: Path, stem: str) -> Path:
    """Create an empty file under a new name: two runs may begin within one second."""
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
    """The commit that the package is from, and whether anything differs from it.

    Both are None outside a checkout, and for a package installed inside somebody else's: git would
    answer there too, from a folder above, but that commit says nothing about this package.
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
