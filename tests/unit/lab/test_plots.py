"""Pictures of result files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tamis import TamisError
from tamis.lab.plots import plot, plottable
from tamis.lab.results.files import write
from tamis.lab.results.records import YARDSTICK, RefusedResult, Result
from tests.unit.lab.examples import (
    CHURN,
    DOOR,
    FIGURE,
    MATCHER,
    MEMORY,
    MOMENT,
    OPERATOR,
    PEER,
    REFUSED,
    SCALE,
)


def _drawn(folder: Path, *results: Result) -> str:
    path = write(folder, results, {}, MOMENT)
    return plot(path, folder / "picture.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_plots_are_of_result_files(tmp_path: Path) -> None:
    """Recognised by its name: a matcher that is just as fast is not the yardstick."""
    even = replace(MATCHER, alone_times=1.0, batch_times=1.0)
    assert "brute force" not in _drawn(tmp_path, even, REFUSED)
    assert "brute force" in _drawn(tmp_path, replace(even, matcher=YARDSTICK), MATCHER)
    path = write(tmp_path, [MATCHER], {}, MOMENT)
    assert plot(path) == path.with_suffix(".png")


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (MATCHER, "one event at a time"),
        (PEER, "times faster than brute force"),
        (replace(PEER, bits=PEER.batch), "in batches, as bitmaps"),
        (SCALE, "linear"),
        (CHURN, "99th percentile"),
        (DOOR, "goal, for this baseline"),
        (replace(DOOR, unit="/s", each=None), "a thousand rules: 5/s"),
    ],
)
def test_each_kind_of_result_has_a_picture(tmp_path: Path, result: Result, says: str) -> None:
    assert plottable([FIGURE, result])
    assert f"<!-- {says}" in _drawn(tmp_path, FIGURE, result)


def test_goals_are_marked_where_there_are_any(tmp_path: Path) -> None:
    assert "<!-- goal -->" in _drawn(tmp_path, PEER)
    without = replace(
        PEER, alone=replace(PEER.alone, goal=None), batch=replace(PEER.batch, goal=None)
    )
    assert "<!-- goal -->" not in _drawn(tmp_path, without)


def test_figures_refusals_and_operators_have_no_picture(tmp_path: Path) -> None:
    assert not plottable([FIGURE, REFUSED, OPERATOR])
    with pytest.raises(TamisError, match="nothing to plot"):
        _drawn(tmp_path, FIGURE, REFUSED)


@pytest.mark.slow
def test_one_picture_of_all_kinds(tmp_path: Path) -> None:
    drawn = _drawn(
        tmp_path, MATCHER, PEER, SCALE, replace(SCALE, subscriptions=5_000_000), CHURN, MEMORY
    )
    for says in ("in batches", "times faster", "linear", "longest", "5 M", "memory of the server"):
        assert f"<!-- {says}" in drawn


def test_refusals_of_peers_are_not_shown_with_matchers(tmp_path: Path) -> None:
    elsewhere = RefusedResult("peers", MATCHER.workload, "refused elsewhere", "too large")
    assert "refused elsewhere" not in _drawn(tmp_path, MATCHER, elsewhere)


def test_plots_need_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TamisError, match=r"tamis\[lab\]"):
        plot(write(tmp_path, [MATCHER], {}, MOMENT))
