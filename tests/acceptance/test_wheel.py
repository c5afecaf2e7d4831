"""A wheel holds every file of the packages, data files included, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.acceptance.pages import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Built from this tree, by what requirements-build.lock has installed: no network is asked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    how = ["--no-index", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    ran = subprocess.run([*command, *how], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (path,) = folder.glob("*.whl")
    return ZipFile(path)


def _about(wheel: ZipFile, name: str) -> str:
    (path,) = (each for each in wheel.namelist() if each.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_it_has_the_files_of_the_tree(wheel: ZipFile) -> None:
    source = ROOT / "src"
    there = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == there
    # What a new folder might leave out.
    for name in (
        "tamis/py.typed",
        "tamis/spark/runtime/java.sh",
        "tamis/spark/runtime/log4j2.properties",
    ):
        assert name in packed
    assert {Path(name).parts[0] for name in packed} == {
        "pyspark_tamis",
        "pyspark_tamis_notifications",
        "tamis",
    }


def test_it_says_how_to_start_and_what_it_needs(wheel: ZipFile) -> None:
    assert "tamis = tamis.cli.main:main" in _about(wheel, "entry_points.txt")
    needed = Parser().parsestr(_about(wheel, "METADATA"))
    assert {"lab", "reasoning", "spark", "spatial", "sql", "text", "vision"} <= set(
        needed.get_all("Provides-Extra", [])
    )
    spark = [each for each in needed.get_all("Requires-Dist", []) if "extra == 'spark'" in each]
    assert any(each.startswith("pyspark[connect]") for each in spark)


def test_it_carries_its_licence(wheel: ZipFile) -> None:
    about = Parser().parsestr(_about(wheel, "METADATA"))
    assert about["License-Expression"] == "Apache-2.0"
    assert _about(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")
