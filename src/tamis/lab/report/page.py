"""The report as one page of HTML that needs nothing else: pictures are inside, without scripts."""

from __future__ import annotations

import inspect
import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from tamis.errors import TamisError
from tamis.files.atomic import atomic_file
from tamis.lab.experiments.experiment import Axes, Experiment, Mode, Observation
from tamis.lab.experiments.judgement import ClaimVerdict
from tamis.lab.experiments.result_files import LabResult
from tamis.lab.plots.experiments import ExperimentPicture
from tamis.lab.plots.style import short
from tamis.lab.report.look import CSS
from tamis.lab.report.summary import PAPERS, LabSummary

LEFT_OUT = "Left out, over the limit of time: {} measurements. Verdicts are about the others."
_CODE = re.compile(r"`([^`]+)`")


def write_page(path: Path, summary: LabSummary) -> None:
    """Write the report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(page(summary).encode())


def page(summary: LabSummary) -> str:
    """The whole page."""
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>tamis lab, {summary.scale}</title><style>{CSS}</style></head><body>",
            *_head(summary),
            *_changes(summary),
            *_claims(summary),
            *_papers(summary),
            "</body></html>",
        ]
    )


# -- parts -----------------------------------------------------------------------------------------


def _head(summary: LabSummary) -> Iterator[str]:
    yield "<header><h1>The experiments of five papers, run on tamis</h1>"
    chips = (
        f'<span class="chip {_kind(name)}">{count} {escape(name)}</span>'
        for name, count in summary.counts.items()
    )
    yield f'<p class="chips">{" ".join(chips)}</p>'
    yield (
        "<p>Each experiment runs <em>as in its paper</em> and <em>tuned</em>, with <code>tamis"
        "</code> as one more curve. A verdict is about the curves as in the paper. The papers "
        "measured other machines and languages, so a claim is judged by order, growth and ratio, "
        "and not by milliseconds.</p>"
    )
    yield f"<p>{_origin(list(summary.results.values()))}</p></header>"


def _origin(results: Sequence[LabResult]) -> str:
    """Where the figures come from."""
    parts = []
    commits = {each.commit for each in results} | {one for r in results for one in r.other_commits}
    known = sorted(commit[:10] for commit in commits if commit)
    if known:
        changed = ", with local changes" if any(each.dirty for each in results) else ""
        parts.append(f"commit {', '.join(known)}{changed}")
    parts.append("seed " + ", ".join(map(str, sorted({each.seed for each in results}))))
    machines = {f"{each.machine.get('cpus')} × {each.machine.get('cpu')}" for each in results}
    parts += sorted(machines)
    parts.append("measured " + min(each.started for each in results)[:10])
    return escape(f"Scale {results[0].scale}, " + ", ".join(parts) + ".")


def _changes(summary: LabSummary) -> Iterator[str]:
    if summary.against is None:
        return
    yield "<section><h2>Changes of verdicts</h2>"
    if not summary.changes:
        yield "<p>No verdict changed.</p></section>"
        return
    rows = (
        [
            _link(each.after),
            _text(each.claim.statement),
            _badge(each.before.standing) + f"<br>{_seen(each.before)}",
            _badge(each.after.standing) + f"<br>{_seen(each.after)}",
        ]
        for each in summary.changes
    )
    yield _table(("claim", "statement", "before", "now"), rows)
    yield "</section>"


def _claims(summary: LabSummary) -> Iterator[str]:
    yield '<section><h2 id="claims">All claims</h2>'
    for paper, experiments in _by_paper(summary.experiments):
        yield f"<h3>{escape(PAPERS[paper])}</h3>"
        rows = (
            [
                _link(verdict),
                _text(verdict.claim.statement),
                _text(verdict.claim.stated or "–"),
                _seen(verdict),
                _badge(verdict.standing),
            ]
            for verdict in summary.verdicts.values()
            if verdict.experiment in experiments
        )
        yield _table(("claim", "the paper says", "its figures", "ours", "verdict"), rows)
    yield "</section>"


def _papers(summary: LabSummary) -> Iterator[str]:
    for paper, experiments in _by_paper(summary.experiments):
        yield f"<section><h2>{escape(PAPERS[paper])}</h2>"
        for each in experiments:
            mine = [one for one in summary.verdicts.values() if one.experiment is each]
            yield from _experiment(each, summary.results.get(each.id), mine, str(summary.scale))
        yield "</section>"


def _experiment(
    experiment: Experiment,
    result: LabResult | None,
    verdicts: Sequence[ClaimVerdict],
    scale: str,
) -> Iterator[str]:
    yield f'<article id="{escape(experiment.id)}"><h3>{escape(experiment.id)}: '
    yield f"{escape(experiment.title)}</h3>"
    yield f'<p class="source">{escape(experiment.source)}</p>'
    for paragraph in _about(experiment):
        yield f"<p>{_text(paragraph)}</p>"
    if result is None:
        yield '<p class="lacking">There are no results yet.</p>'
    else:
        if not result.whole:
            done = f"{len(result.observations)} of {result.size}"
            yield f'<p class="lacking">The results are incomplete: {done} observations.</p>'
        if result.left_out:
            yield f'<p class="lacking">{escape(LEFT_OUT.format(result.left_out))}</p>'
        yield _picture(experiment, result)
    rows = (
        [
            f'<span id="{escape(each.claim.id)}">{escape(each.claim.id)}</span>',
            _text(each.claim.statement),
            _text(each.claim.stated or "–"),
            _seen(each),
            f"{_badge(each.standing)}<br>{_why(each)}",
        ]
        for each in verdicts
    )
    if verdicts:
        yield _table(("claim", "the paper says", "its figures", "ours", "verdict, and why"), rows)
    if result is not None:
        yield from _figures(experiment, result)
    command = f"tamis lab run {experiment.id} --scale {scale}"
    yield f"<p><code>{escape(command)}</code></p></article>"


def _about(experiment: Experiment) -> Iterator[str]:
    """The docstrings of an experiment and of its file, by paragraphs."""
    kind = type(experiment)
    for about in (kind.__doc__, sys.modules[kind.__module__].__doc__):
        for paragraph in inspect.cleandoc(about or "").split("\n\n"):
            if paragraph.rstrip(".").lower() not in ("", experiment.source.lower()):
                yield paragraph


def _picture(experiment: Experiment, result: LabResult) -> str:
    try:
        drawn = ExperimentPicture(experiment, result).svg()
    except TamisError as why:
        return f'<p class="lacking">{escape(str(why))}.</p>'
    data = b64encode(drawn).decode()
    alt = escape(f"{experiment.id}: {', '.join(axes.y for axes in experiment.plots)}")
    return f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}"></figure>'


def _figures(experiment: Experiment, result: LabResult) -> Iterator[str]:
    """The numbers behind the picture, the options, and the refusals; folded."""
    yield "<details><summary>Figures and options</summary>"
    for panel in dict.fromkeys(each.panel for each in result.observations):
        for axes in experiment.plots:
            shown = [each for each in result.observations if each.panel == panel]
            yield _numbers(panel, axes, shown)
    options = {
        (each.curve, each.mode, ", ".join(f"{a}={b}" for a, b in each.options.items()))
        for each in result.observations
        if each.options
    }
    if options:
        yield _table(
            ("curve", "mode", "options"),
            ([escape(curve), escape(mode), escape(text)] for curve, mode, text in sorted(options)),
        )
    refused = [each for each in result.observations if each.refusal]
    if refused:
        yield _table(
            ("refused or left out", "at", "reason"),
            ([escape(_curve(e)), escape(_x(e.x)), escape(e.refusal)] for e in refused),
        )
    yield "</details>"


def _numbers(panel: str, axes: Axes, shown: Sequence[Observation]) -> str:
    fit = [each for each in shown if each.has(axes.quantity)]
    if axes.deviation:
        fit = [each for each in fit if len(each.measured.get(axes.quantity, ())) > 1]
    curves = list(dict.fromkeys(map(_curve, fit)))
    if not curves:
        return ""
    cells = {
        (each.x, _curve(each)): short(
            each.deviation(axes.quantity) if axes.deviation else each.value(axes.quantity)
        )
        for each in fit
    }
    rows = (
        [escape(_x(x)), *(cells.get((x, curve), "") for curve in curves)]
        for x in dict.fromkeys(each.x for each in fit)
    )
    title = escape(f"{panel}: {axes.y}" if panel else axes.y)
    return f"<h4>{title}</h4>" + _table([axes.x, *curves], rows, "numbers")


# -- small things ----------------------------------------------------------------------------------


def _by_paper(experiments: Sequence[Experiment]) -> list[tuple[str, list[Experiment]]]:
    found = [(paper, [each for each in experiments if each.paper == paper]) for paper in PAPERS]
    return [(paper, mine) for paper, mine in found if mine]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already. On a phone each row becomes a block."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td data-head="{escape(heading)}">{cell}</td>'
            for heading, cell in zip(headings, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    name = f' class="{kind}"' if kind else ""
    return (
        f'<div class="wide"><table{name}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _text(given: str) -> str:
    """Text with `code` in it."""
    return _CODE.sub(r"<code>\1</code>", escape(" ".join(given.split())))


def _link(verdict: ClaimVerdict) -> str:
    id = escape(verdict.claim.id)
    return f'<a href="#{id}">{id}</a>'


def _seen(verdict: ClaimVerdict) -> str:
    return _text(verdict.judgement.seen) if verdict.judgement else "–"


def _why(verdict: ClaimVerdict) -> str:
    return _text(verdict.judgement.why if verdict.judgement else verdict.lacking)


def _badge(standing: str) -> str:
    return f'<span class="chip {_kind(standing)}">{escape(standing)}</span>'


def _kind(standing: str) -> str:
    return standing.replace(" ", "-")


def _curve(observation: Observation) -> str:
    mode = "" if observation.mode is Mode.OURS else f" ({observation.mode})"
    return f"{observation.curve}{mode}"


def _x(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:,.10g}"
