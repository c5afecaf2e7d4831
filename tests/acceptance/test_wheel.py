"""A wheel holds every file of the packages, and works where it is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from tamis.match.default.passes.batch_pass import match_chunk
from tests.acceptance.pages import ROOT

pytestmark = pytest.mark.xdist_group("wheel")  # which is built once
_NAME = re.compile(r"[\w.-]+")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_OFFLINE = ("--no-index", "--no-deps", "-q")


def _wheel(source: Path, folder: Path) -> Path:
    """Built by what requirements-build.lock has installed: no network is asked."""
    _run(*_PIP, "wheel", *_OFFLINE, "--no-build-isolation", "-w", folder, source)
    (path,) = folder.glob("*.whl")
    return path


def _run(*command: str | Path, **environment: str) -> str:
    """What a command prints, which must succeed; it sees nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=kept | environment, cwd="/"
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(path: Path) -> Iterator[ZipFile]:
    with ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the source, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (unpacked,) = (each for each in folder.iterdir() if each.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def clean(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel, and what the core needs, and no more.

    What it needs is linked, not downloaded: it is installed here.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for each in _needed("tamis"):
        found = distribution(each)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            place = site / top
            if top != "__pycache__" and not place.exists():
                place.symlink_to(Path(str(found.locate_file(top))))
    _run(*_PIP, "--python", folder / "bin" / "python", "install", *_OFFLINE, path)
    return folder / "bin"


@pytest.fixture(scope="module")
def compiled() -> dict[str, str]:
    """Code that other tests have compiled serves here too: it does not depend on the folder."""
    return {"NUMBA_CACHE_DIR": str(match_chunk.stats.cache_path)}


def _needed(name: str) -> set[str]:
    """All that a package needs without any extra, itself left out."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in distribution(waiting.pop()).requires or ():
            needed = _NAME.match(line)
            assert needed is not None
            if ";" not in line and needed[0] not in found:  # a marker: an extra or another Python
                found.add(needed[0])
                waiting.append(needed[0])
    return found


def _about(wheel: ZipFile, name: str) -> str:
    (path,) = (each for each in wheel.namelist() if each.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def _metadata(wheel: ZipFile) -> Message:
    return Parser().parsestr(_about(wheel, "METADATA"))


def _packed(wheel: ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_it_has_the_files_of_the_tree(wheel: ZipFile) -> None:
    source = ROOT / "src"
    there = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = _packed(wheel)
    assert packed == there
    # What a new folder might leave out.
    for name in (
        "tamis/py.typed",
        "tamis/match/topss/sql/grouping.sql",
        "tamis/service/rpc/tamis.proto",
        "tamis/service/console/static/index.html",
        "tamis/service/console/static/vendor/uplot-1.6.32.min.js",
        "tamis/spark/runtime/java.sh",
        "tamis/spark/runtime/log4j2.properties",
        "tamis/store/postgresql/tables.sql",
    ):
        assert name in packed
    assert {Path(name).parts[0] for name in packed} == {
        "pyspark_tamis",
        "pyspark_tamis_notifications",
        "tamis",
    }


def test_it_says_how_to_start_and_what_it_needs(wheel: ZipFile) -> None:
    assert "tamis = tamis.cli.main:main" in _about(wheel, "entry_points.txt")
    needed = _metadata(wheel)
    assert {"lab", "reasoning", "spark", "spatial", "sql", "text", "vision"} <= set(
        needed.get_all("Provides-Extra", [])
    )
    spark = [each for each in needed.get_all("Requires-Dist", []) if "extra == 'spark'" in each]
    assert any(each.startswith("pyspark[connect]") for each in spark)


def test_it_carries_its_licence(wheel: ZipFile) -> None:
    assert _metadata(wheel)["License-Expression"] == "Apache-2.0"
    assert _about(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_its_metadata_is_complete(wheel: ZipFile) -> None:
    about = _metadata(wheel)
    assert about["Summary"]
    assert about["Requires-Python"] == ">=3.11"
    assert about["Description-Content-Type"] == "text/markdown"
    readme = str(about.get_payload())
    assert readme.strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    classifiers = set(about.get_all("Classifier", []))
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= classifiers
    assert "Programming Language :: Python :: 3.11" in classifiers
    assert not about.get_all("Project-URL"), "no page of the project is published yet"


def test_the_core_needs_no_spark_and_no_web() -> None:
    needed = _needed("tamis")
    assert {"click", "numba", "numpy", "pyarrow", "rich"} <= needed
    heavy = {"pyspark", "pandas", "fastapi", "uvicorn", "grpcio", "httptools", "apsw", "matplotlib"}
    assert not needed & heavy


@pytest.mark.slow
def test_the_source_archive_gives_the_same_wheel(
    wheel: ZipFile, sdist: Path, tmp_path: Path
) -> None:
    with ZipFile(_wheel(sdist, tmp_path)) as made:
        assert _packed(made) == _packed(wheel)
        assert _about(made, "METADATA") == _about(wheel, "METADATA")
    # What is needed to install, to check and to test it.
    for name in ("Makefile", "requirements.lock", "tests", "typings", "examples", "docs"):
        assert (sdist / name).exists(), name
    there = {path.name for path in sdist.iterdir()}
    assert not there & {".venv", "out", ".git", ".ci"}


PROGRAM = """\
from tamis import Engine, Schema

schema = Schema.from_dict({"attributes": {"price": "decimal"}})
engine = Engine(schema)
engine.subscribe("price < 5", id="cheap")
found: list[int | str] = list(engine.match({"price": 4}))
print(found)
"""


@pytest.mark.slow
def test_the_core_works_in_a_clean_environment(clean: Path, compiled: dict[str, str]) -> None:
    python = clean / "python"
    where = _run(python, "-c", "import tamis; print(tamis.__file__)")
    assert where.startswith(str(clean.parent)), "it is not the checkout"
    missing = "import importlib.util as u; print(u.find_spec('pyspark'), u.find_spec('fastapi'))"
    assert _run(python, "-c", missing) == "None None\n"
    assert _run(python, "-c", PROGRAM, **compiled) == "['cheap']\n"
    assert _run(clean / "tamis", "--version").startswith("tamis, version ")


@pytest.mark.slow
def test_commands_of_the_core_work_in_a_clean_environment(
    clean: Path, compiled: dict[str, str]
) -> None:
    files = [ROOT / "examples" / name for name in ("lots.yaml", "searches.csv", "lots.jsonl")]
    given = ("--schema", files[0], "--subscriptions", files[1], "--events", files[2])
    found = _run(clean / "tamis", "match", *given, "--json", **compiled)
    assert len(found.splitlines()) == 4
    checked = _run(clean / "tamis", "check", files[0], "price<5", "--json", **compiled)
    assert json.loads(checked) == {"condition": "price < 5", "clauses": ["price < 5"]}
    # The operators of tamis are found by their entry points, and say what to install.
    listed = json.loads(_run(clean / "tamis", "operators", "--json", **compiled))
    assert {"locIn", "hasKeyword", "faceCount"} <= {each["call"].split("(")[0] for each in listed}
    assert "pip install 'tamis[spatial]'" in str(listed)
    refused = subprocess.run(
        [clean / "tamis", "subscribe", "price < 5"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert refused.stderr == "tamis: this command needs httpx2: pip install 'tamis[client]'\n"


@pytest.mark.slow
def test_spark_finds_the_data_sources(clean: Path) -> None:
    find = (
        "import importlib, pkgutil; "
        "names = sorted(each.name for each in pkgutil.iter_modules()); "
        "own = [name for name in names if name.startswith('pyspark_t')]; "
        "print(*(importlib.import_module(name).DefaultSource.name() for name in own))"
    )
    (site,) = clean.parent.glob("lib/python3*/site-packages")
    here = Path(str(distribution("pyspark").locate_file("")))
    # In this order: what is installed here also has a link to the checkout.
    found = _run(clean / "python", "-c", find, PYTHONPATH=f"{site}{os.pathsep}{here}")
    assert found.split() == ["tamis", "tamis_notifications"]


@pytest.mark.slow
def test_a_type_checker_knows_the_types(clean: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=", program)
    how = ("--python-executable", clean / "python", "--cache-dir", tmp_path / "cache")
    program.write_text(PROGRAM + "reveal_type(engine)\n")
    assert 'Revealed type is "tamis.engine.engine.Engine' in _run(*mypy, *how)
    program.write_text(PROGRAM + "engine.match(5).nothing\n")
    with pytest.raises(AssertionError, match="nothing"):
        _run(*mypy, *how)
