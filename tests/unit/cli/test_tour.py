"""`tamis tour`: the engine at work, in a terminal."""

from __future__ import annotations

import pytest

from tests.unit.cli.calls import Capture, run


@pytest.mark.parametrize("matcher", ["scan", "naive", "fair-predicate"])
def test_tour_runs_to_its_end(matcher: str, capsys: Capture) -> None:
    size = ("--subscriptions", "800", "--events", "900", "--seconds", "1000")
    assert run("tour", *size, "--matcher", matcher) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out, "plain where there is no terminal"
    for part in (
        "you subscribe",
        "you unsubscribe",
        "Why it matches",
        "Why another does not",
        "events a second",
    ):
        assert part in out


def test_tour_is_the_same_for_the_same_seed(capsys: Capture) -> None:
    def lots() -> list[str]:
        size = ("--subscriptions", "300", "--events", "100", "--seconds", "1000", "--seed", "5")
        assert run("tour", *size) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]

    assert lots() == lots()


def test_tour_stops_with_a_summary(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from tamis.cli import tour

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tour, "_change", interrupt)
    assert run("tour", "--subscriptions", "300", "--events", "200") == 0
    out = capsys.readouterr().out
    assert "stopped" in out
    assert "events a second" in out
