"""docs/papers.md has the verdicts of the result files in docs/figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.lab.experiments.experiment import LabScale, Observation
from tamis.lab.experiments.registry import EXPERIMENTS
from tamis.lab.experiments.result_files import LabResult, result_path, write_result
from tamis.lab.papers.gryphon.prototype import JavaPrototype
from tamis.lab.report.summary import PAPERS
from tests.acceptance.pages import load_script

SCRIPT = load_script("papers_page")


def _stored(folder: Path, scale: LabScale, ms: float) -> Path:
    """A result of an experiment whose only claim needs one curve."""
    found = LabResult.begin(JavaPrototype(), scale, 1)
    for step in JavaPrototype().steps(scale):
        for curve in step.curves:
            seen = Observation(step.x, curve.name, curve.mode, {"match_ms": [ms]})
            found = found.including(seen, 0.1)
    path = result_path(folder, scale, found.experiment)
    path.parent.mkdir(parents=True)
    write_result(path, found)
    return path


def test_the_page_is_fresh() -> None:
    written = SCRIPT.PAGE.read_text(encoding="utf-8")
    assert written == SCRIPT.page(written), f"docs/papers.md: run {SCRIPT.COMMAND}"
    for name in EXPERIMENTS:
        assert f"\n### {name}: " in written


def test_results_are_shown_at_the_scale_of_the_paper(tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    before = SCRIPT.verdicts("gryphon", folder)
    assert "Not measured yet: `tamis lab run AG-java --scale paper`" in before
    _stored(folder, LabScale.SMALL, 0.25)
    small = SCRIPT.verdicts("gryphon", folder)
    assert "Measured by `tamis lab run AG-java --scale small`" in small
    assert "10,000: 0.250" in small
    path = _stored(folder, LabScale.PAPER, 0.5)
    path.with_suffix(".svg").write_text("<svg/>")
    full = SCRIPT.verdicts("gryphon", folder)
    assert "Measured by `tamis lab run AG-java --scale paper`" in full
    assert "10,000: 0.500" in full
    assert "](figures/paper/AG-java.svg)" in full
    assert "| cannot be tested here |" in full
    assert "- AG-java.time, cannot be tested here: The number of subscriptions" in full


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    marks = [f"{SCRIPT.begin(paper)}\n{SCRIPT.END}\n" for paper in PAPERS]
    assert SCRIPT.page("".join(marks), tmp_path).count(SCRIPT.END) == len(PAPERS)
    with pytest.raises(SystemExit, match="lacks the marks of"):
        SCRIPT.page("".join(marks[1:]), tmp_path)
