"""Measure this tree and another commit in turns on one machine, and show the figures side by side.

    python scripts/bench_compare.py [--against COMMIT] [--rounds N] [--] BENCH ARGUMENTS

For example: python scripts/bench_compare.py --against HEAD~1 -- peers --rows dexin

The other commit is checked out under out/compare. Each side runs `tamis bench` in processes of its
own: this, other, this, other, and so on, so that a busy machine slows down both. A figure that is
worse by more than 5 % beyond the spread is marked, and the exit code is 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORSE = 0.05
# The keys that name a result, and the keys of figures, for all of which less is better.
NAMES = ("measurement", "what", "figure", "row", "workload", "matcher", "scheduler", "through")
MEASURED = ("us", "p50", "bytes_each", "seconds", "cost", "evaluated")
MEASURED_ENDS = ("_us", "_ms", "_s")

Figures = dict[str, float]


@dataclass(frozen=True)
class Compared:
    """One figure on both sides."""

    name: str
    this: float
    other: float
    spread: float  # half the range of a side over its median, of the side with more
    worse: bool

    @property
    def ratio(self) -> float:
        return self.this / self.other


def figures(document: Mapping[str, Any]) -> Figures:
    """The figures of a result file by name; rates become times."""
    found: Figures = {}
    for result in document["results"]:
        name = " ".join(str(result[each]) for each in NAMES if result.get(each))
        if "unit" in result and result["value"]:
            rate = result["unit"].endswith("/s")
            found[name] = 1 / result["value"] if rate else result["value"]
        for path, value in _leaves(result):
            found[f"{name} {path}"] = value
    return found


def _leaves(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for key, value in given.items():
        if key in ("parameters", "goal"):
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        elif (key in MEASURED or key.endswith(MEASURED_ENDS)) and isinstance(value, int | float):
            yield before + key, float(value)


def compare(this: Sequence[Figures], other: Sequence[Figures]) -> list[Compared]:
    """The figures that both sides have: medians over the rounds, and the spread."""
    both: list[Compared] = []
    for name in this[0]:
        sides = [[each[name] for each in side if each.get(name)] for side in (this, other)]
        if not all(sides):
            continue
        mine, theirs = (median(side) for side in sides)
        spread = max((max(side) - min(side)) / 2 / median(side) for side in sides)
        worse = mine / theirs > 1 + WORSE + spread
        both.append(Compared(name, mine, theirs, spread, worse))
    return both


def checked_out(commit: str) -> Path:
    """A worktree of another commit, which is kept for the next time."""
    sha = _git("rev-parse", "--verify", f"{commit}^{{commit}}")
    folder = ROOT / "out" / "compare" / sha[:12]
    _git("worktree", "prune")
    if not folder.exists():
        _git("worktree", "add", "--detach", str(folder), sha)
    return folder


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"bench_compare: git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout.strip()


def run(tree: Path, arguments: Sequence[str]) -> Figures:
    """The figures of `tamis bench` with the code of a tree, whatever its layout."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["tamis"].partition(":")
    begin = f"import sys; from {module} import {function}; sys.exit({function}())"
    with tempfile.TemporaryDirectory() as out:
        ran = subprocess.run(
            [sys.executable, "-c", begin, "bench", *arguments, "--out", out],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if ran.returncode:
            raise SystemExit(f"bench_compare: `tamis bench` in {tree} ended with {ran.returncode}")
        (result,) = Path(out).glob("*.json")
        return figures(json.loads(result.read_text(encoding="utf-8")))


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench_compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--against", default="HEAD~1", help="the other commit")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side, at least 3")
    parser.add_argument("bench", nargs="*", help="for tamis bench; after a --")
    options = parser.parse_args(given)
    if options.rounds < 3:
        parser.error(f"--rounds is 3 or more, to see a spread, got {options.rounds}")
    arguments = options.bench or ["peers"]
    trees = (ROOT, checked_out(options.against))
    for tree in trees:
        run(tree, [*arguments, "--quick"])  # compile before measuring
    rounds: tuple[list[Figures], list[Figures]] = ([], [])
    for number in range(options.rounds):
        for tree, side in zip(trees, rounds, strict=True):
            print(f"round {number + 1} of {options.rounds}: {tree}", file=sys.stderr, flush=True)
            side.append(run(tree, arguments))
    both = compare(*rounds)
    if not both:
        raise SystemExit("bench_compare: the two sides have no figure in common")
    width = max(len(each.name) for each in both)
    print(f"{'':{width}}  {'this':>11}  {options.against[:11]:>11}  ratio   spread")
    for each in both:
        mark = "  WORSE" if each.worse else ""
        print(
            f"{each.name:{width}}  {each.this:11.5g}  {each.other:11.5g}  {each.ratio:5.2f}"
            f"  ±{each.spread:5.1%}{mark}"
        )
    return int(any(each.worse for each in both))


if __name__ == "__main__":
    sys.exit(main())
