"""A page for each matcher, from its line in the registry, its docstring and its options.

The docstring of a matcher has its parts in paragraphs: the idea; the cost, which begins with "add";
the paper, and what differs from it; the tally, which begins with "Tally:".
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.site_files import anchor
from tamis.lab.experiments.experiment import LabScale, Mode
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.match.base import Matcher
from tamis.match.registry import MatcherEntry, entry, matcher_class, matchers

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "matchers"
MARK = "<!-- made by scripts/generate.py from the class: change it there, and run make generate -->"
_IDEA, _COSTS, _PAPER, _TALLY = "The idea", "The cost", "The paper, and what differs", "The tally"
_COST = re.compile(r"add[ ,:]")
_VERB = re.compile(r"\b(add|remove|match)(?= O\(|, remove|:| the same| likewise)")


def matcher_pages() -> dict[Path, str]:
    """Each page as it should be."""
    lab = _experiments()
    return {
        FOLDER / f"{name}.md": "\n".join(_page(entry(name), matcher_class(name), lab)) + "\n"
        for name in matchers()
        if entry(name).path.startswith("tamis.")  # a test may have registered others
    }


def _page(matcher: MatcherEntry, kind: type[Matcher], lab: dict[str, list[str]]) -> Iterator[str]:
    source = Path(inspect.getsourcefile(kind) or "").relative_to(ROOT).as_posix()
    own = matcher.paper.startswith("none")  # "none: the default"
    yield from (f"# {matcher.name}", "", MARK, "")
    yield _sentence(matcher.idea)
    yield "[Which matcher](../matchers.md#which-matcher) says when it is good, and when it is bad."
    yield ""
    if not own:
        yield f"- **Paper:** {matcher.paper}"
    yield f"- **Answer:** {_answer(matcher)}"
    yield f"- **Source:** [`{source.removeprefix('src/')}`](../../{source})"
    for title, paragraphs in _parts(matcher.name, kind):
        if paragraphs:
            yield from ("", f"## {title}")
            for paragraph in paragraphs:
                yield from ("", paragraph)
    yield from ("", "## Options", "")
    yield from _options(matcher.name, kind)
    yield from ("", "## Measure it", "", "```sh")
    compared = dict.fromkeys((matcher.name, "tamis", "scan"))
    yield f"tamis bench match {' '.join(f'--matcher {each}' for each in compared)}"
    yield "```"
    if matcher.name in lab and not own:
        yield from ("", "The lab runs it in these experiments of the paper:", "")
        yield from lab[matcher.name]


def _parts(name: str, kind: type[Matcher]) -> list[tuple[str, list[str]]]:
    """The paragraphs of the docstring under their titles."""
    text = inspect.getdoc(kind) or ""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    costs = [at for at, each in enumerate(paragraphs) if _COST.match(each)]
    if len(costs) != 1:
        raise SystemExit(f"{name}: one paragraph of its docstring begins with the cost of add")
    (cost,) = costs
    rest, tally = paragraphs[cost + 1 :], []
    if rest and rest[-1].startswith("Tally: "):
        tally = [_sentence(rest.pop().removeprefix("Tally: ").removesuffix("."))]
    return [
        (_IDEA, paragraphs[:cost]),
        (_COSTS, [_VERB.sub(r"`\1`", paragraphs[cost])]),
        (_PAPER, rest),
        (_TALLY, tally),
    ]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _answer(matcher: MatcherEntry) -> str:
    return "exact" if matcher.exact else "may let too much through, unless `exact=True`"


def _options(name: str, kind: type[Matcher]) -> Iterator[str]:
    options = kind.options().values()
    if not options:
        yield "It has none."
        return
    yield "| option | values | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for each in options:
        yield f"| `{each.name}` | {each.values} | `{each.default}` | {each.meaning} |"


def _experiments() -> dict[str, list[str]]:
    """The experiments of the lab that measure a matcher, as links."""
    found: dict[str, list[str]] = {}
    for known in EXPERIMENTS:
        given = experiment(known)
        curves = {
            curve.name
            for step in given.steps(LabScale.PAPER)
            for curve in step.curves
            if curve.mode == Mode.PAPER
        }
        heading = f"{given.id}: {given.title}"
        for name in sorted(curves):
            found.setdefault(name, []).append(f"- [{heading}](../papers.md#{anchor(heading)})")
    return found
