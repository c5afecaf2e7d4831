"""Result files of experiments: what is written is read, and damage is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis import TamisError
from tamis.lab.experiments.experiment import LabScale, Mode, Observation
from tamis.lab.experiments.result_files import (
    LabResult,
    picture_path,
    plain,
    read_result,
    read_results,
    result_files,
    result_path,
    write_result,
)
from tests.unit.lab.experiments.tiny_experiment import Tiny

SEEN = Observation(10, "dexin", Mode.TUNED, {"match_ms": [0.123456789, 2]}, {"nodes": 1e-7 / 3})


def _result() -> LabResult:
    return LabResult.begin(Tiny(), LabScale.SMALL, 1).including(SEEN, 0.5)


def test_a_file_says_all_that_is_needed_to_read_it_later(tmp_path: Path) -> None:
    path = tmp_path / "TINY.json"
    write_result(path, _result())
    assert read_result(path) == _result()
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["steps"][0]["parameters"] == {"n": 10}
    assert document["seed"] == 1
    assert document["versions"]["numpy"]
    assert document["machine"]["cpus"]
    assert {"commit", "dirty", "started", "scale"} <= document.keys()
    (observation,) = document["observations"]
    assert observation["measured"] == {"match_ms": [0.12346, 2]}, "5 digits, and all repetitions"
    assert observation["seconds"] == 0.5


def test_a_packed_file_is_read_and_continued(tmp_path: Path) -> None:
    path = result_path(tmp_path, LabScale.SMALL, "TINY")
    path.parent.mkdir()
    made = _result()
    write_result(path, made)
    packed = path.with_name("TINY.json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert result_path(tmp_path, LabScale.SMALL, "TINY") == path, "the plain file counts"
    assert result_files(tmp_path) == [path]
    path.unlink()
    assert result_path(tmp_path, LabScale.SMALL, "TINY") == packed
    assert read_results(tmp_path, LabScale.SMALL) == {"TINY": made}
    more = made.including(replace(SEEN, x=100), 0.1)
    write_result(packed, more)
    assert read_result(packed) == more
    assert picture_path(packed, "svg") == picture_path(path, "svg") == path.with_suffix(".svg")
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(TamisError, match="damaged"):
        read_result(packed)


def test_values_are_the_same_after_they_were_read() -> None:
    given = {"a": (1, np.int64(2)), 3: Mode.PAPER, "c": np.array([0.5]), "d": None, "e": True}
    assert plain(given) == {"a": [1, 2], "3": "paper", "c": [0.5], "d": None, "e": True}
    with pytest.raises(TamisError, match="cannot hold"):
        plain({"a": object()})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_not_stored(number: float) -> None:
    with pytest.raises(TamisError, match="match_ms of dexin at 10 is"):
        _result().including(replace(SEEN, measured={"match_ms": [number]}), 0.1)


def _change(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["observations"][0][name] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda document: document.pop("seed"), "seed"),
        (lambda document: document.pop("observations"), "observations"),
        (lambda document: document.update(format=99), "format 99"),
        (lambda document: document.update(format=None), "damaged"),
        (lambda document: document["steps"][0].pop("curves"), "curves"),
        (_change("mode", "best"), "best"),
        (_change("measured", {"match_ms": ["1"]}), "match_ms"),
        (_change("counts", {"nodes": "many"}), "nodes"),
        (_change("colour", "red"), "colour"),
        (_change("seconds", None), "result file"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    path = tmp_path / "TINY.json"
    write_result(path, _result())
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(TamisError, match=says) as refused:
        read_result(path)
    assert str(path) in str(refused.value)


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TamisError, match="tamis lab run writes it"):
        read_result(tmp_path / "TINY.json")
    (tmp_path / "TINY.json").write_text("{", encoding="utf-8")
    with pytest.raises(TamisError, match="not valid JSON"):
        read_result(tmp_path / "TINY.json")
    with pytest.raises(TamisError, match="has no result files"):
        read_results(tmp_path, LabScale.PAPER)
