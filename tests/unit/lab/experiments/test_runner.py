"""Runs of experiments: they continue where they were interrupted, and mix nothing silently."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tamis import TamisError
from tamis.lab.experiments.experiment import LabScale, LabStep, Observation
from tamis.lab.experiments.result_files import read_result, result_path, write_result
from tamis.lab.experiments.runner import LabRun, TimeLeft, prepare_runs
from tests.unit.lab.experiments.tiny_experiment import CURVES, PAUSE, WHERE, Tiny

SMALL = LabScale.SMALL
EVERY = 9  # observations


def _run(folder: Path, seed: int = 1) -> LabRun:
    (run,) = prepare_runs([Tiny()], SMALL, seed, folder)
    return run


def test_a_run_continues_what_is_missing(tmp_path: Path) -> None:
    first = _run(tmp_path)
    whole = list(first.observe())
    assert len(whole) == EVERY
    assert _run(tmp_path).missing() == []
    # A file of which the middle of a step is missing: only its curves are measured.
    path = result_path(tmp_path, SMALL, "TINY")
    some = read_result(path)
    kept = [some.observations[at] for at in (0, 2, 3, 4)]
    write_result(path, some.only(kept.__contains__))
    again = _run(tmp_path)
    assert [(step.x, step.curves) for step in again.missing()] == [
        (10, CURVES[1:2]),
        (100, CURVES[2:]),
        (1_000, CURVES),
    ]
    assert len(list(again.observe())) == EVERY - len(kept)
    assert {each.curve for each in read_result(path).observations} == {"dexin", "rein"}
    assert sorted(map(str, read_result(path).observations)) == sorted(map(str, some.observations))
    assert [each.x for each in read_result(path).observed().all] == [10] * 3 + [100] * 3 + [
        1_000
    ] * 3


def test_every_observation_is_on_disk_when_it_is_yielded(tmp_path: Path) -> None:
    run = _run(tmp_path)
    for number, _ in enumerate(islice(run.observe(), 4), 1):
        assert len(read_result(run.path).observations) == number
    assert not read_result(run.path).whole


def test_files_that_differ_are_not_continued(tmp_path: Path) -> None:
    run = _run(tmp_path)
    list(islice(run.observe(), 2))
    with pytest.raises(TamisError, match=r"the seed 1\n--fresh measures again"):
        _run(tmp_path, seed=2)

    class Other(Tiny):
        def steps(self, scale: LabScale) -> list[LabStep]:
            return [replace(step, parameters={}) for step in super().steps(scale)]

    with pytest.raises(TamisError, match="other parameters"):
        prepare_runs([Other()], SMALL, 1, tmp_path)
    assert len(LabRun(Other(), SMALL, 2, run.path, fresh=True).missing()) == 3

    write_result(run.path, replace(run.result, machine={**run.result.machine, "cpus": 999}))
    with pytest.raises(TamisError, match=r"begun on another machine\n--fresh"):
        _run(tmp_path)

    write_result(run.path, replace(run.result, commit="0" * 40))
    with pytest.raises(TamisError, match=r"commit 0000000000\n.*--mix-commits"):
        _run(tmp_path)
    (mixed,) = prepare_runs([Tiny()], SMALL, 1, tmp_path, mix_commits=True)
    assert len(list(mixed.observe())) == EVERY - 2
    found = read_result(run.path)
    assert found.commit == "0" * 40
    assert found.other_commits == (str(run.result.commit),), "the file names both"
    # A whole file of another commit is left alone, and that is said.
    assert "0000000000; --fresh" in _run(tmp_path).note


def test_experiments_measure_what_is_asked(tmp_path: Path) -> None:
    class Repeats(Tiny):
        def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
            yield from super().measure(step, seed)
            yield from super().measure(step, seed)

    class Lacks(Tiny):
        def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
            yield from islice(super().measure(step, seed), 2)

    with pytest.raises(TamisError, match=r"dexin \(paper\) at 10, which is not missing"):
        list(LabRun(Repeats(), SMALL, 1, tmp_path / "a.json").observe())
    with pytest.raises(TamisError, match=r"did not measure dexin \(tuned\) at 10"):
        list(LabRun(Lacks(), SMALL, 1, tmp_path / "b.json").observe())


def test_nothing_to_measure_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TamisError, match="anything to measure at scale cluster"):
        prepare_runs([Tiny()], LabScale.CLUSTER, 1, tmp_path)


def test_the_time_left_follows_the_curves(tmp_path: Path) -> None:
    run = _run(tmp_path)
    left = TimeLeft([run])
    assert left.seconds() is None
    list(islice(run.observe(), 3))
    run.result = replace(run.result, seconds=(1.0, 2.0, 3.0), prepared=(0.0, 0.0, 0.0))
    assert left.seconds() == pytest.approx(2 * (1.0 + 2.0 + 3.0))
    first = run.result.only(lambda each: each is run.result.observations[0])
    run.result = replace(first, seconds=(5.0,))
    assert left.seconds() == pytest.approx(8 * 5.0), "without figures, the mean"


def test_a_curve_over_the_limit_is_left_out_at_larger_steps(tmp_path: Path) -> None:
    limited = partial(prepare_runs, [Tiny()], SMALL, 1, tmp_path, limit=60.0)
    (run,) = limited()
    list(islice(run.observe(), 3))
    # The first curve waited for its workload; the second one took too long itself.
    run.result = replace(run.result, seconds=(90.0, 61.0, 60.0), prepared=(80.0, 0.0, 0.0))
    write_result(run.path, run.result)
    left = TimeLeft([run]).seconds()
    assert left == pytest.approx(2 * (90.0 + 60.0)), "what is left out takes no time"
    (run,) = limited()  # also after an interruption
    later = list(run.observe())
    over = {(each.x, each.curve): each.refusal for each in later if each.refusal}
    reason = "over the limit of 60 s: it took 61 s at 10"
    assert over == {(100, "rein"): reason, (1_000, "rein"): reason}
    found = read_result(run.path)
    assert found.whole
    assert found.left_out == 2
    assert not found.observed().refusals("rein"), "the algorithm itself refused nothing"
    # Without the limit they are measured; the file has the order of the steps.
    (run,) = prepare_runs([Tiny()], SMALL, 1, tmp_path)
    assert [(step.x, step.curves) for step in run.missing()] == [
        (100, CURVES[1:2]),
        (1_000, CURVES[1:2]),
    ]
    list(run.observe())
    found = read_result(run.path)
    assert found.left_out == 0
    assert found.observed().refusals("rein") == {1_000: "too large for rein"}
    assert [each.x for each in found.observed().all] == [10] * 3 + [100] * 3 + [1_000] * 3


def test_only_a_workload_with_more_of_something_is_larger() -> None:
    small = LabStep(1, (), {"n": 10, "attributes": 4, "p": 0.5})
    for larger in ({"n": 20}, {"attributes": 5}, {"n": 20, "attributes": 5}):
        assert replace(small, parameters={**small.parameters, **larger}).is_larger(small)
    for other in ({}, {"p": 0.9}, {"n": 5, "attributes": 5}, {"n": 5}):
        assert not replace(small, parameters={**small.parameters, **other}).is_larger(small)
    assert not LabStep(1, (), {"n": 20, "attributes": 4}, "another panel").is_larger(small)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_process_leaves_a_whole_file(tmp_path: Path, number: int) -> None:
    """Three interruptions, then a run to the end: the results are those of one go."""
    path = result_path(tmp_path, SMALL, "TINY")
    command = [sys.executable, "-m", WHERE, "lab", "run", "tiny", "--folder", str(tmp_path)]
    seen = 0
    for _ in range(3):
        process = subprocess.Popen(
            command,
            env={**os.environ, PAUSE: "0.2"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seen = _more_than(seen, path, process)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        if number != signal.SIGKILL:
            assert process.returncode == 130
            assert "to continue: tamis lab run tiny --scale small --folder" in out
            assert "Traceback" not in out
        assert 0 < len(read_result(path).observations) < EVERY
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "✓ TINY" in done.stdout
    in_one_go = tmp_path / "other"
    list(_run(in_one_go).observe())
    found, expected = (read_result(result_path(at, SMALL, "TINY")) for at in (tmp_path, in_one_go))
    assert found.observations == expected.observations
    assert not list(path.parent.glob(".*.tmp")), "what a killed process left is gone"


def _more_than(seen: int, path: Path, process: subprocess.Popen[str]) -> int:
    """Wait until the file of a running process has more observations."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            number = len(json.loads(path.read_text(encoding="utf-8"))["observations"])
            if number > seen:
                return number
        time.sleep(0.01)
    raise AssertionError(process.communicate()[0])
