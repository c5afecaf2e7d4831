"""Forged facts and arrays with right checksums are refused, or harmless: no crash, no hang."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.engine import Engine
from tamis.errors import SavedIndexError
from tamis.files.array_folder import read
from tamis.match.registry import entry, matchers
from tests.soak_report import record, seed
from tests.unit.engine import forged_index
from tests.unit.engine.forged_index import Forgery, made, rewrite

_DEFAULT = 600  # trials over all matchers; the matcher `tamis` has a third of them


# A process for each: what is forged may end it. It is forked from one that has imported all.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", forged_index.__name__])
OTHERS = (*(name for name in matchers() if name != "tamis"), "calls")


def _share(name: str) -> int:
    many = int(os.environ.get("TAMIS_FORGED", _DEFAULT))
    return max(1, many // 3 if name == "tamis" else 2 * many // (3 * len(matchers())))


@pytest.mark.xdist_group("forged")
@pytest.mark.parametrize(
    "name",
    ["tamis", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)],
)
def test_a_forged_index_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {} if name == "calls" else dict(entry(name).trials[0])
    began = time.monotonic()
    process = FORKS.Process(
        target=forged_index.try_forgeries,
        args=(str(tmp_path), name, options, 1 + seed(), _share(name)),
    )
    process.start()
    process.join()
    lines = (tmp_path / "said").read_text(errors="replace").splitlines()
    tried = [line for line in lines if line.startswith("try ")]
    wrong = [line for line in lines if line.startswith("WRONG")]
    if process.exitcode:
        wrong.append(f"exit code {process.exitcode}: {lines[-40:]}")
    record("forged", len(tried), len(wrong), time.monotonic() - began)
    assert not wrong
    assert lines[-1] == f"tried {len(tried)}"


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("part", "fact", "value"),
    [
        ("roster", "top", 2**60),
        ("roster", "next", -1),
        ("ids", "texts", 2**60),
        ("roster", "top", "1"),
    ],
)
def test_a_forged_count_is_refused_before_memory_is_taken(
    part: str, fact: str, value: Any, verify: bool, tmp_path: Path
) -> None:
    made(tmp_path / "index", "naive", {})
    forgery = Forgery("one", lambda facts: facts["parts"][part].update({fact: value}))
    rewrite(tmp_path / "forged", read(tmp_path / "index"), forgery)
    with pytest.raises(SavedIndexError, match=f"inconsistent: '{fact}' "):
        Engine.open(tmp_path / "forged", verify=verify)
