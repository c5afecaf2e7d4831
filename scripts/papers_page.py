"""Write the verdicts of docs/papers.md from the result files in docs/figures.

    python scripts/papers_page.py [--check]

The prose of the page is written by hand. Between two marks for each paper stand its experiments:
the claims, what the paper states, what we found, and the verdict. They come from the result files
by the same checks as `tamis lab report`. An experiment with results of several scales is shown at
the scale of the paper. With --check, nothing is written, and the exit code is 1 if the page is
stale.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tamis.lab.experiments.experiment import Experiment, LabScale
from tamis.lab.experiments.judgement import ClaimVerdict, judge
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.lab.experiments.result_files import (
    LabResult,
    picture_path,
    read_result,
    result_files,
)
from tamis.lab.report.page import LEFT_OUT
from tamis.lab.report.summary import PAPERS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, FIGURES = DOCS / "papers.md", DOCS / "figures"
COMMAND = "python scripts/papers_page.py"
END = "<!-- end of verdicts -->"


def begin(paper: str) -> str:
    """The mark above the verdicts of a paper."""
    return f"<!-- verdicts of {paper}: scripts/papers_page.py -->"


def results(folder: Path) -> dict[str, tuple[Path, LabResult]]:
    """The result files below a folder, by experiment. The scale of the paper comes first."""
    found: dict[str, tuple[Path, LabResult]] = {}
    for path in result_files(folder):
        result = read_result(path)
        known = found.get(result.experiment)
        if known is None or result.scale == LabScale.PAPER:
            found[result.experiment] = path, result
    return found


def verdicts(paper: str, folder: Path) -> str:
    """The experiments of a paper with their verdicts."""
    known = results(folder)
    lines: list[str] = []
    for name in EXPERIMENTS:
        given = experiment(name)
        if given.paper == paper:
            path, result = known.get(given.id, (None, None))
            lines += [*_section(given, path, result, folder), ""]
    return "\n".join(lines).rstrip() or "The lab has no experiment of this paper yet."


def _section(
    given: Experiment, path: Path | None, result: LabResult | None, folder: Path
) -> Iterator[str]:
    yield f"### {given.id}: {given.title}"
    yield ""
    scale = LabScale.PAPER if result is None else result.scale
    command = f"`tamis lab run {given.id} --scale {scale}`"
    if result is None or path is None:
        yield f"{_sentence(given.source)} Not measured yet: {command}."
    else:
        below = "" if result.scale == LabScale.PAPER else ", with sizes below those of the paper"
        left_out = f" {LEFT_OUT.format(result.left_out)}" if result.left_out else ""
        yield f"{_sentence(given.source)} Measured by {command}{below}.{left_out}"
        picture = picture_path(path, "svg")
        if picture.exists():
            yield ""
            place = picture.relative_to(folder.parent).as_posix()
            yield f"![{given.id}: {given.title}]({place})"
    judged = judge(given, result)
    yield ""
    yield "| claim | the paper | we found | verdict |"
    yield "| --- | --- | --- | --- |"
    for each in judged:
        seen = each.judgement.seen if each.judgement else ""
        cells = (each.claim.statement, each.claim.stated, seen, each.standing)
        yield "| " + " | ".join(map(_cell, cells)) + " |"
    reasons = [each for each in judged if each.judgement and each.judgement.why]
    if reasons:
        yield ""
        yield from (_reason(each) for each in reasons)


def _reason(verdict: ClaimVerdict) -> str:
    assert verdict.judgement is not None
    return f"- {verdict.claim.id}, {verdict.standing}: {verdict.judgement.why}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def page(text: str, folder: Path = FIGURES) -> str:
    """The page with fresh verdicts."""
    for paper in PAPERS:
        before, mark, rest = text.partition(begin(paper))
        _, end, after = rest.partition(END)
        if not mark or not end:
            raise SystemExit(f"docs/papers.md lacks the marks of {paper}")
        text = f"{before}{mark}\n\n{verdicts(paper, folder)}\n\n{END}{after}"
    return text


def main(arguments: list[str]) -> int:
    written = PAGE.read_text(encoding="utf-8")
    fresh = page(written)
    if "--check" in arguments:
        return int(fresh != written)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
