"""Each branch of each claim on Le Subscribe, on made observations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tamis.lab.experiments.experiment import Observation
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tests.unit.lab.papers.claim_cases import (
    CONFIRMED,
    CONTRARY,
    NOT_CONFIRMED,
    UNTESTABLE,
    Case,
    judged,
    line,
    refused,
)

FAIR, PREFERRED, QUARANTINE = "fair-predicate", "equality-preferred", "quarantine"
Seen = list[Observation]


def three(quantity: str, *values: tuple[float, ...]) -> Seen:
    """Quarantine, equality-preferred and fair-predicate at 100, 200, …"""
    return [
        each
        for name, of in zip((QUARANTINE, PREFERRED, FAIR), values, strict=True)
        for each in line(name, **{quantity: {100 * (at + 1): v for at, v in enumerate(of)}})
    ]


def by_share(quantity: str, *values: tuple[float, ...]) -> Seen:
    """The same, at p = 0, 0.5 and 1."""
    return [
        each
        for name, of in zip((QUARANTINE, PREFERRED, FAIR), values, strict=True)
        for each in line(name, **{quantity: dict(zip((0.0, 0.5, 1.0), of, strict=True))})
    ]


def naive(slower: float) -> Seen:
    counts = {"predicates": 900.0, "subscriptions": 10.0}
    return [
        replace(each, counts=counts)
        for each in (
            *line("naive", processing_ms={400_000: slower}),
            *line(QUARANTINE, processing_ms={400_000: 1}),
        )
    ]


def equal_at_one(preferred: float, touched: float) -> Seen:
    return [
        *line(QUARANTINE, batch_ms={1.0: 1}, subscriptions={1.0: 5}),
        *line(PREFERRED, batch_ms={1.0: preferred}, subscriptions={1.0: touched}),
    ]


def transfer(first: float, last: float, execution: float) -> Seen:
    return line(FAIR, transfer_ms={1: first, 2: last}, execution_ms={1: 1, 2: execution})


def unselective(at_one: float) -> Seen:
    return [
        *line(QUARANTINE, batch_ms={1: at_one, 200: 1}, partial={1: 90, 200: 3}),
        *line(PREFERRED, batch_ms={1: 1, 200: 4}),
    ]


def gough(nodes: float, change: float) -> Seen:
    return [
        *line("gough", graph_nodes={10: 10, 100: nodes}, change_ms={100: change}),
        *line(FAIR, add_us={100: 500}),
        *refused("gough-tree", 100),
    ]


def hanson(poor: float, naive_poor: float) -> Seen:
    return [
        *line("hanson", "p = 0", batch_ms={1: poor, 200: 1}, subscriptions={1: 50, 200: 1}),
        *line("naive", "p = 0", batch_ms={1: naive_poor, 200: 20}),
    ]


def access(first: float) -> Seen:
    return [
        *line("hanson", "p = 1", batch_ms={1: 1}),
        *line("hanson-first", "p = 1", batch_ms={1: first}),
    ]


def tree(leaves: float) -> Seen:
    shares = (0.0, 1.0)
    return line(
        "aguilera",
        nodes=dict.fromkeys(shares, 10.0),
        predicates=dict.fromkeys(shares, 7.0),
        matched_leaves=dict.fromkeys(shares, leaves),
    )


def inequalities(nodes: float, visited: float) -> Seen:
    return line(
        "aguilera",
        inequality_nodes={0.0: nodes, 1.0: 0},
        inequalities={0.0: 100, 1.0: 0},
        tree_nodes={0.0: 300, 1.0: 200},
        nodes={0.0: visited, 1.0: 10},
    )


def neon(last: float) -> Seen:
    return [
        *line("neon", predicates={10: 10, 1000: last}),
        *line(FAIR, predicates={10: 5, 1000: 50}),
    ]


def capacity(n: int, ms: float) -> Seen:
    return line(QUARANTINE, match_ms={n: ms}, memory_mb={n: 300})


def types(slower: float, fewer: float) -> Seen:
    return [
        each
        for name in (QUARANTINE, PREFERRED)
        for each in line(name, batch_ms={1: 1, 16: slower}, subscriptions={1: 160, 16: fewer})
    ]


def processes(two: float, processors: int = 2) -> Seen:
    found = [
        *line(QUARANTINE, execution_ms={1: 1, 2: two}),
        *line(PREFERRED, execution_ms={1: 1, 2: two}),
    ]
    return [replace(each, parameters={"processors": processors}) for each in found]


EQUALITIES = {"batch_ms": {100: 4, 1_000: 4.1, 10_000: 5, 100_000: 6}}
LINEAR = {"batch_ms": {100: 1, 1_000: 10, 10_000: 100, 100_000: 1_000}}
ROOT = {"batch_ms": {100: 1, 1_000: 5, 10_000: 25, 100_000: 125}}
LOOK_UPS = {"nodes": {100: 27.0}}

CASES = [
    Case("LS-9a.order", CONFIRMED, three("processing_ms", (1, 2), (3, 4), (5, 6))),
    Case("LS-9a.order", CONTRARY, three("processing_ms", (1, 2), (5, 6), (3, 4))),
    Case("LS-9a.order", NOT_CONFIRMED, three("processing_ms", (1, 2), (3, 4), (5, 4))),
    Case("LS-9a.growth", CONFIRMED, three("processing_ms", (1, 2), (3, 4), (5, 6))),
    Case("LS-9a.growth", NOT_CONFIRMED, three("processing_ms", (1, 2), (3, 3), (5, 6))),
    Case("LS-9a.growth", CONTRARY, three("processing_ms", (2, 1), (3, 2), (5, 3))),
    Case("LS-9a.naive", CONFIRMED, naive(9_000)),
    Case("LS-9a.naive", NOT_CONFIRMED, naive(70)),
    Case("LS-9a.naive", CONTRARY, naive(0.5)),
    Case("LS-9b.order", CONFIRMED, three("execution_ms", (1, 2), (3, 4), (5, 6))),
    Case("LS-9b.order", CONTRARY, three("execution_ms", (9, 9), (3, 4), (5, 6))),
    Case("LS-9b.order", NOT_CONFIRMED, three("execution_ms", (1, 4), (3, 4), (5, 6))),
    Case("LS-9b.transfer", CONFIRMED, transfer(0.1, 0.2, 2)),
    Case("LS-9b.transfer", NOT_CONFIRMED, transfer(0.1, 2, 2.5)),
    Case("LS-9b.transfer", CONTRARY, transfer(0.2, 0.1, 2)),
    Case("LS-10.fall", CONFIRMED, by_share("batch_ms", (3, 2, 1), (5, 4, 1), (9, 8, 7))),
    Case("LS-10.fall", NOT_CONFIRMED, by_share("batch_ms", (3, 4, 1), (5, 4, 1), (9, 8, 7))),
    Case("LS-10.fall", CONTRARY, by_share("batch_ms", (1, 2, 3), (1, 4, 5), (7, 8, 9))),
    Case("LS-10.equal", CONFIRMED, equal_at_one(1.1, 5)),
    Case("LS-10.equal", NOT_CONFIRMED, equal_at_one(2, 5)),
    Case("LS-10.equal", NOT_CONFIRMED, equal_at_one(1, 7)),
    Case("LS-10.sums", CONFIRMED, by_share("additions", (1, 10, 0), (9, 140, 0), (1, 1, 1))),
    Case("LS-10.sums", NOT_CONFIRMED, by_share("additions", (1, 10, 0), (9, 20, 0), (1, 1, 1))),
    Case("LS-10.sums", CONTRARY, by_share("additions", (1, 10, 0), (9, 5, 0), (1, 1, 1))),
    Case(
        "LS-10.model",
        CONFIRMED,
        line(FAIR, batch_ms={0.0: 9, 1.0: 1}, subscriptions={0.0: 9, 1.0: 1}),
    ),
    Case(
        "LS-10.model",
        NOT_CONFIRMED,
        line(FAIR, batch_ms={0.0: 1, 1.0: 1}, subscriptions={0.0: 9, 1.0: 1}),
    ),
    Case(
        "LS-10.model",
        CONTRARY,
        line(FAIR, batch_ms={0.0: 1, 1.0: 2}, subscriptions={0.0: 9, 1.0: 1}),
    ),
    Case("LS-11.threshold", CONFIRMED, line(PREFERRED, **EQUALITIES, **LOOK_UPS)),
    Case("LS-11.threshold", NOT_CONFIRMED, line(PREFERRED, **ROOT, **LOOK_UPS)),
    Case(
        "LS-11.threshold",
        CONTRARY,
        line(PREFERRED, batch_ms={100: 1, 1_000: 20}, **LOOK_UPS),
    ),
    Case("LS-11.logarithm", CONFIRMED, line(PREFERRED, **EQUALITIES)),
    Case("LS-11.logarithm", NOT_CONFIRMED, line(PREFERRED, **ROOT)),
    Case("LS-11.logarithm", CONTRARY, line(PREFERRED, **LINEAR)),
    Case("LS-ins.similar", CONFIRMED, three("add_us", (10,), (15,), (5,))),
    Case("LS-ins.similar", NOT_CONFIRMED, three("add_us", (10,), (35,), (5,))),
    Case("LS-ins.fair", CONFIRMED, three("add_us", (10,), (15,), (5,))),
    Case("LS-ins.fair", NOT_CONFIRMED, three("add_us", (10,), (15,), (10,))),
    Case("LS-ins.fair", CONTRARY, three("add_us", (10,), (15,), (12,))),
    Case("LS-ins.time", UNTESTABLE, three("add_us", (10,), (15,), (12,))),
    Case("LS-qual.preferred", CONFIRMED, unselective(3)),
    Case("LS-qual.preferred", NOT_CONFIRMED, unselective(1)),
    Case("LS-qual.preferred", CONTRARY, unselective(0.5)),
    Case(
        "LS-gough.faster",
        CONFIRMED,
        [*line("gough", batch_ms={1: 1}), *line(FAIR, batch_ms={1: 2})],
    ),
    Case(
        "LS-gough.faster", CONTRARY, [*line("gough", batch_ms={1: 3}), *line(FAIR, batch_ms={1: 2})]
    ),
    Case(
        "LS-gough.faster",
        NOT_CONFIRMED,
        [*line("gough", batch_ms={1: 2}), *line(FAIR, batch_ms={1: 2})],
    ),
    Case("LS-gough.nodes", CONFIRMED, gough(5_000, 100)),
    Case("LS-gough.nodes", NOT_CONFIRMED, gough(120, 100)),
    Case("LS-gough.nodes", CONTRARY, gough(20, 100)),
    Case("LS-gough.change", CONFIRMED, gough(5_000, 100)),
    Case("LS-gough.change", NOT_CONFIRMED, gough(5_000, 2)),
    Case("LS-gough.change", CONTRARY, gough(5_000, 0.1)),
    Case("LS-hanson.unselective", CONFIRMED, hanson(10, 21)),
    Case("LS-hanson.unselective", NOT_CONFIRMED, hanson(10, 210)),
    Case("LS-hanson.unselective", CONTRARY, hanson(0.5, 21)),
    Case("LS-hanson.knowledge", CONFIRMED, access(9)),
    Case("LS-hanson.knowledge", NOT_CONFIRMED, access(1.5)),
    Case("LS-hanson.knowledge", CONTRARY, access(0.5)),
    Case("LS-aguilera.paths", CONFIRMED, tree(3)),
    Case("LS-aguilera.paths", CONFIRMED, tree(3.0004)),  # figures are rounded
    Case("LS-aguilera.paths", NOT_CONFIRMED, tree(2)),
    Case("LS-aguilera.paths", CONTRARY, tree(4)),
    Case("LS-aguilera.nodes", CONFIRMED, inequalities(120, 90)),
    Case("LS-aguilera.nodes", NOT_CONFIRMED, inequalities(50, 90)),
    Case("LS-aguilera.nodes", CONTRARY, inequalities(120, 5)),
    Case("LS-neon.located", CONFIRMED, neon(1_000)),
    Case("LS-neon.located", NOT_CONFIRMED, neon(100)),
    Case("LS-neon.located", CONTRARY, neon(10)),
    Case("LS-capacity.load", CONFIRMED, capacity(2_000_000, 1)),
    Case("LS-capacity.load", NOT_CONFIRMED, capacity(50_000, 1)),
    Case("LS-capacity.load", CONTRARY, capacity(2_000_000, 100)),
    Case("LS-types.efficient", CONFIRMED, types(0.2, 10)),
    Case("LS-types.efficient", NOT_CONFIRMED, types(0.2, 100)),
    Case("LS-types.efficient", CONTRARY, types(2, 10)),
    Case("LS-processors.gain", CONFIRMED, processes(0.6)),
    Case("LS-processors.gain", NOT_CONFIRMED, processes(0.95)),
    Case("LS-processors.gain", CONTRARY, processes(1.5)),
    Case("LS-processors.gain", UNTESTABLE, processes(1.5, processors=1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.claim}, {case.standing}")
def test_a_claim_says_what_the_figures_say(case: Case) -> None:
    given = experiment(case.claim.partition(".")[0])
    assert judged(given, case).standing is case.standing


def test_every_claim_has_cases() -> None:
    tried = {case.claim for case in CASES}
    known = {
        claim.id
        for name in EXPERIMENTS
        if name.startswith("LS-")
        for claim in experiment(name).claims
    }
    assert tried == known
