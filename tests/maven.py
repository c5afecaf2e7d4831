"""Jars that tests need, fetched by Maven and kept in the cache of the checkout."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache"
_ALL_OTHERS = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


class FetchError(Exception):
    """What Maven said."""


def unfetchable(kind: str, name: str) -> str | None:
    """Why jars cannot be had here; None if they can."""
    if (CACHE / kind / name).is_dir() or shutil.which("mvn"):
        return None
    return f"there is no Maven, which would fetch {kind}"


def fetched(kind: str, name: str, artifacts: Sequence[str], alone: bool = False) -> list[Path]:
    """Jars, with all that they need unless they are to be alone; kept for the next time."""
    folder = CACHE / kind / name
    if not folder.is_dir():
        fresh = Path(tempfile.mkdtemp(prefix="tamis-maven-"))
        (fresh / "pom.xml").write_text(_pom(artifacts, alone))
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
        try:
            run(["mvn", "-B", "-q", *goal], fresh)
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(fresh / "jars", folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return sorted(folder.glob("*.jar"))


def _pom(artifacts: Sequence[str], alone: bool) -> str:
    listed = ""
    for artifact in artifacts:
        group, id, version = artifact.split(":")
        listed += (
            f"<dependency><groupId>{group}</groupId><artifactId>{id}</artifactId>"
            f"<version>{version}</version>{_ALL_OTHERS if alone else ''}</dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tamis</groupId><artifactId>tests</artifactId><version>1</version>"
        f"<dependencies>{listed}</dependencies></project>"
    )


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder; a `FetchError` if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise FetchError(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
