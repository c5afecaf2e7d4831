"""The parts of the experiments that measure: counts, shares of clusters, the server, flat files."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from tamis import workload
from tamis.encode.arrow import events_from_table
from tamis.encode.encoder import Encoder
from tamis.errors import MatcherError, TamisError
from tamis.lab.experiments.experiment import Curve, LabStep, Mode, Observation
from tamis.lab.instruments.agreement import differences
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.papers.lesubscribe.cluster_shares import cluster_share
from tamis.lab.papers.lesubscribe.figure10 import LsFigure10
from tamis.lab.papers.lesubscribe.server import MatchingServer, ServedWorkload
from tamis.lab.papers.matcher_experiment import tuned
from tamis.lab.papers.topss import databases
from tamis.lab.papers.topss.setting import POSTGRESQL
from tamis.lab.papers.topss.table2 import read_flat_file, write_flat_file
from tamis.match.registry import create
from tamis.match.topss.sql.database import DSN
from tamis.model.schema import Schema


def sums(n: int, p: float) -> float:
    """By hand: the counters that fair-predicate raises for an event, on average."""
    occurs = 0.5 / (1 - 0.5**6)  # in a subscription that is not empty
    satisfied = 3 / 200 + 3 * (p / 5000 + (1 - p) * 0.49995)
    return n * occurs * 0.5 * satisfied


@pytest.mark.slow
def test_counts_are_those_of_the_workload() -> None:
    """Operation counts depend on no machine, so they can be worked out by hand."""
    experiment = LsFigure10()
    n = 4_000
    parameters = {"n": n, "p": 0.5, "events": 400, "seconds": 0.2}
    step = LabStep(0.5, experiment.curves()[:3], parameters)
    found: dict[str, Observation] = {each.curve: each for each in experiment.measure(step, seed=1)}
    counts = found["fair-predicate"].counts
    assert counts["subscriptions"] == pytest.approx(sums(n, 0.5), rel=0.15)
    assert counts["compared"] == n, "as published, the last pass compares all subscriptions"
    # Three texts absent, each number absent or an inequality, less the empty ones.
    without = n * 0.5**3 * (0.75**3 - 0.5**3) / (1 - 0.5**6)
    assert found["quarantine"].counts["compared"] == pytest.approx(without, rel=0.15)
    assert found["quarantine"].counts["additions"] < found["equality-preferred"].counts["additions"]
    assert len({each.counts["matches"] for each in found.values()}) == 1


def test_a_tuned_curve_has_the_best_options() -> None:
    made = workload.make("lesubscribe", 3_000, seed=2)
    runs = MatcherRuns.of(made, RunEffort(events=20, seconds=0.05, changes=0))
    grid = ({"access": "first"}, {"access": "nonsense"})
    best = tuned(runs, Curve("hanson", Mode.TUNED), grid, "match_ms")
    assert best.options == {"access": "first"}, "options that are refused cannot win"


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_shares_hold_whole_clusters_and_all_subscriptions(parts: int) -> None:
    made = workload.make("lesubscribe", 2_000, seed=4)
    terms, _ = clauses(Encoder(Schema.from_dict(made.schema)), made.subscriptions)
    shares = [cluster_share(terms, part, parts) for part in range(parts)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(2_000))
    assert max(map(len, shares)) < 1.2 * min(map(len, shares))
    owners: dict[frozenset[int], set[int]] = {}
    for part, share in enumerate(shares):
        for clause in share.tolist():
            rows = slice(terms.starts[clause], terms.starts[clause + 1])
            equal = terms.low[rows] == terms.high[rows]
            schema = frozenset(terms.attribute[rows][equal].tolist())
            owners.setdefault(schema, set()).add(part)
    assert all(len(who) == 1 for schema, who in owners.items() if schema)


@pytest.mark.slow
def test_a_server_answers_like_a_matcher_here() -> None:
    served = ServedWorkload(500, 3, {"p": 0.5}, part=1, parts=2)
    made = served.make()
    encoder = Encoder(Schema.from_dict(made.schema))
    terms, _ = clauses(encoder, made.subscriptions)
    share = cluster_share(terms, 1, 2)
    here = create("scan")
    here.add(share, terms.take(share))
    events = served.events(1, 20)
    with MatchingServer(served) as server:
        with pytest.raises(MatcherError, match="no option"):
            server.load("naive", {"colour": "blue"})
        loaded = server.load("quarantine", {})
        server.ask(events)
        answer = server.answer()
    assert loaded.counts["matches"] > 0
    assert not any(differences(answer.matches, here.match(events_from_table(encoder, events))))


@pytest.mark.slow
def test_a_server_that_has_died_is_an_error_of_its_experiment() -> None:
    with MatchingServer(ServedWorkload(20, 3, {"p": 0.5})) as server:
        server.load("naive", {})
        server._process.kill()
        server._process.join()
        for _ in range(2):  # the pipe may take what nobody reads
            with pytest.raises(TamisError, match="the process of a matcher has ended"):
                server.load("naive", {})


def test_a_flat_file_holds_the_subscriptions(tmp_path: Path) -> None:
    made = workload.make("topss", 50, seed=5)
    write_flat_file(made, tmp_path / "flat.csv")
    lines = (tmp_path / "flat.csv").read_text().splitlines()
    assert lines[0] == '"id","attribute","comparator","value"'
    assert read_flat_file(tmp_path / "flat.csv").equals(made.subscriptions.combine_chunks())


@pytest.mark.parametrize("why", [TamisError("initdb failed"), KeyError("no account 'postgres'")])
def test_a_server_that_does_not_start_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    def fails(bin: Path) -> NoReturn:
        raise why

    monkeypatch.delenv(DSN, raising=False)
    monkeypatch.setattr(databases, "server_programs", lambda: Path("/nowhere"))
    monkeypatch.setattr(databases, "running_server", fails)
    databases._own_server.cache_clear()
    assert "PostgreSQL does not start here" in _refusal_of_postgresql()


def test_a_machine_without_postgresql_refuses_its_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DSN, raising=False)
    monkeypatch.setattr(databases, "server_programs", lambda: None)
    databases._own_server.cache_clear()
    assert "no PostgreSQL server is installed" in _refusal_of_postgresql()


def _refusal_of_postgresql() -> str:
    curve = Curve("sql-grouping-postgresql", Mode.PAPER, {"database": POSTGRESQL})
    runs = MatcherRuns.of(workload.make("topss", 20), RunEffort(events=2))
    found = databases.observe_connected(runs, LabStep(20, (curve,)), curve, "sql-grouping")
    assert not found.measured
    return found.refusal
