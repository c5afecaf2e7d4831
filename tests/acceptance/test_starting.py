"""Processes that start: together, with no code kept, with damaged code, with no place for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tamis.index.code_cache import read
from tamis.match.default.passes.batch_pass import match_chunk

CODE = """\
import sys
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    from tamis import Engine, Schema
    schema = Schema.from_dict({"attributes": {"title": "text", "price": "decimal"}})
    engine = Engine(schema, matcher=sys.argv[1])
    engine.subscribe("price < 5", id="cheap")
    engine.subscribe('title starts with "old" or price > 90', id="rare")
    engine.subscribe("price between 4 and 6 and title exists", id="fair")
    engine.subscribe("price missing", id="free")
    events = [{"title": "old oak", "price": 4}, {"price": 95}, {"title": "new"}]
    print([sorted(found) for found in engine.match_batch(events)])
names = {each.data["dispatcher"].__name__ for _, each in compiled.buffer}
print(*sorted(names & {"_add", "insert_framed", "sift"}))
"""
ANSWER = "[['cheap', 'fair', 'rare'], ['rare'], ['free']]"
AT_ONCE = 4


def _start(matcher: str, folder: Path | None) -> subprocess.Popen[str]:
    """A new process that matches, with its compiled code in a folder, or in the usual one."""
    environment = os.environ | ({} if folder is None else {"NUMBA_CACHE_DIR": str(folder)})
    return subprocess.Popen(
        [sys.executable, "-c", CODE, matcher],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answers(started: Sequence[subprocess.Popen[str]]) -> list[list[str]]:
    """What processes compiled of the kernels that a start calls; their answers must be right."""
    said = []
    for each in started:
        out, err = each.communicate()
        assert each.returncode == 0, err
        answer, compiled = out.splitlines()
        assert answer == ANSWER
        said.append(compiled.split())
    return said


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_processes_that_start_together_with_nothing_compiled(tmp_path: Path) -> None:
    _answers([_start("naive", tmp_path) for _ in range(AT_ONCE)])
    files = _files(tmp_path)
    assert files
    assert all(read(path) is not None for path in files), "all are whole, and nothing else is left"


@pytest.fixture(scope="module")
def kept() -> Path:
    """The folder of compiled code, with all that the default matcher needs to start."""
    _answers([_start("tamis", None)])
    return Path(match_chunk.stats.cache_path)


@pytest.mark.xdist_group("starting")
def test_a_new_process_compiles_nothing_that_was_compiled_before(kept: Path) -> None:
    assert _answers([_start("tamis", None)]) == [[]]


@pytest.mark.xdist_group("starting")
def test_processes_that_start_together_with_damaged_code(kept: Path, tmp_path: Path) -> None:
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    # Code of earlier states of the source may be there too; all of it is damaged.
    inserting = list(tmp_path.glob("batch_pass.insert_framed-*"))
    adding = list(tmp_path.glob("packed_clauses._add-*"))
    for path in inserting:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for path in adding:
        path.write_bytes(b"")
    compiled = _answers([_start("tamis", tmp_path) for _ in range(AT_ONCE)])
    assert ["_add", "insert_framed"] in compiled
    assert any(read(path) is not None for path in inserting), "written again"
    assert any(read(path) is not None for path in adding)
    assert _answers([_start("tamis", tmp_path)]) == [[]]


def test_a_process_that_can_keep_no_code_still_answers(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    started = _start("naive", tmp_path / "file" / "folder")
    out, err = started.communicate()
    assert started.returncode == 0, err
    assert out.splitlines()[0] == ANSWER
    assert err.count("cannot write compiled code") == 1
