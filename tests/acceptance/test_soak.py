"""`make soak`: rounds with seeds of their own, totals that last, failures that are kept."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.acceptance.pages import ROOT, load_script

# It fails with every other seed.
TRIED = """
import os
from tests import soak_report

def test_something():
    count, seed = int(os.environ["TAMIS_TRIED"]), soak_report.seed()
    soak_report.record("trial", count, seed % 2, 0.1)
    assert seed % 2 == 0, f"the seed is {seed}"
"""
# Seconds for a round. A round that would take longer tries less, on a busy machine too.
_PATIENCE = 3600.0
CRASHES = "import os\n\ndef test_something():\n    os.abort()\n"
SILENT = "import pytest\n\ndef test_something():\n    pytest.skip('a part is missing')\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with three campaigns of our own."""
    module = load_script("soak")
    campaigns = []
    for name, text in {"trial": TRIED, "crash": CRASHES, "silent": SILENT}.items():
        path = tmp_path / f"test_{name}.py"
        path.write_text(text)
        campaigns.append(module.Campaign(name, str(path), "TAMIS_TRIED", 30, 10))
    monkeypatch.setattr(module, "CAMPAIGNS", tuple(campaigns))
    monkeypatch.setattr(module, "this_commit", lambda: "abc")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    return module


@pytest.mark.slow
def test_totals_last_and_seeds_differ(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, trial = tmp_path / "soak", script.CAMPAIGNS[0]
    first = script.Soak(folder, "abc", [trial])
    first._round(trial, _PATIENCE)
    assert first.total(trial).failed == 1
    kept = (folder / "failures" / "trial-1.txt").read_text()
    assert "TAMIS_TRIED=10 TAMIS_SOAK_SEED=1" in kept.splitlines()[0]
    assert str(trial.node) in kept.splitlines()[0]
    assert "the seed is 1" in kept
    again = script.Soak(folder, "abc", [trial])
    again._round(trial, _PATIENCE)
    assert again.total(trial).tried == 20
    assert again.total(trial).failed == 1  # the second seed is good
    assert "20 of         30 tried, 1 failed" in capsys.readouterr().out
    other = script.Soak(folder, "def", [trial])
    assert other.total(trial).tried == 0
    assert other.others() == ["abc"]
    again.forget()
    assert script.Soak(folder, "abc", [trial]).total(trial).tried == 0
    assert script.Soak(folder, "abc", [trial])._rounds == {"trial": 2}  # no seed comes twice


@pytest.mark.slow
def test_a_crash_is_a_failure_and_a_skip_is_not(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "soak"
    assert script.main(["--minutes", "0.01", "--campaigns", "silent"], folder) == 0
    assert "silent         cannot run here" in capsys.readouterr().out
    assert script.main(["--minutes", "0.01", "--campaigns", "crash"], folder) == 1
    out = capsys.readouterr().out
    assert "FAILED with seed 1" in out
    assert "To continue: make soak CAMPAIGNS=crash" in out
    assert script.main(["--minutes", "0", "--campaigns", "crash"], folder) == 1  # it has failed
    assert script.main(["--minutes", "0", "--campaigns", "crash", "--fresh"], folder) == 0


def test_what_cannot_be_run_or_read(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="'flips' is unknown; known are trial, crash, silent"):
        script.main(["--campaigns", "flips"], tmp_path)
    (tmp_path / "totals.json").write_text("{")
    with pytest.raises(SystemExit, match="cannot be read, remove it"):
        script.main(["--minutes", "0"], tmp_path)


def test_each_campaign_has_a_test_that_reads_its_variable() -> None:
    for campaign in load_script("soak").CAMPAIGNS:
        if campaign.variable:
            for node in campaign.node.split():
                path = ROOT / node.partition("::")[0]
                texts = [path] if path.is_file() else [*path.glob("*.py")]
                reads = (campaign.variable, "tests.power_loss.restart import")
                assert any(each in text.read_text() for each in reads for text in texts), node
