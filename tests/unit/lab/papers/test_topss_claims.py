"""Each branch of each claim on TOPSS, on made observations."""

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
    left_out,
    line,
    refused,
)

BYTE, BIT, LIST = "counting-byte", "counting-bit", "counting-list"
DUCK, POSTGRES = "sql-grouping-duckdb", "sql-grouping-postgresql"
Seen = list[Observation]


def several(quantity: str, **curves: tuple[float, ...]) -> Seen:
    """Curves at 1,000, 10,000, …; an underscore in a name stands for a hyphen."""
    return [
        each
        for name, values in curves.items()
        for each in line(
            name.replace("_", "-"),
            **{quantity: {1_000 * 10**at: value for at, value in enumerate(values)}},
        )
    ]


def settings(structure: str, quantity: str, *values: tuple[float, ...]) -> Seen:
    """A structure under W0, W1, … at 1,000, 10,000, …"""
    return [
        each
        for number, of in enumerate(values)
        for each in line(
            f"{structure}, W{number}",
            **{quantity: {1_000 * 10**at: value for at, value in enumerate(of)}},
        )
    ]


def crossing(quantity: str, lists: tuple[float, ...], tables: tuple[float, ...]) -> Seen:
    """Lists and tables under W3."""
    return [
        *line("list, W3", **{quantity: dict(enumerate(lists, 1))}),
        *line("table, W3", **{quantity: dict(enumerate(tables, 1))}),
    ]


def memory(lists: float, bits: float, deletion: float = 9) -> Seen:
    return [
        *line(LIST, structure_mb={1_000_000: lists}),
        *line(BIT, structure_mb={1_000_000: bits}),
        *line(BYTE, structure_mb={1_000_000: 400}),
        *line(DUCK, structure_mb={1_000_000: 30}),
        *line("counting-list-deletion", structure_mb={1_000_000: deletion}),
    ]


def best(lists: float, x: int = 1_000_000) -> Seen:
    return [
        *line(LIST, match_ms={x: lists}),
        *line("counting-list-linear", match_ms={x: 11}),
        *line(BIT, match_ms={x: 20}),
        *line(BYTE, match_ms={x: 15}),
    ]


def loads(bits: float, lists: float, duck: float) -> Seen:
    return several(
        "load_ms", counting_bit=(bits,), counting_list=(lists,), sql_grouping_duckdb=(duck,)
    )


def overtaken(*lists: float) -> Seen:
    sizes = (10_000, 100_000, 500_000, 1_000_000)
    return [
        *line(LIST, load_ms=dict(zip(sizes, lists, strict=True))),
        *line(DUCK, load_ms=dict(zip(sizes, (10, 100, 500, 1_000), strict=True))),
    ]


def operations(add: float, remove: float) -> Seen:
    return [
        *line(LIST, add_us={1: 10, 100: add}, remove_us={1: 10, 100: remove}),
        *line("counting-list-linear", add_us={1: 10, 100: 90}),
    ]


def sequential(compared: float, ms: float) -> Seen:
    return line(
        "sql-sequential-duckdb",
        predicates={1_000: 1_000, 10_000: compared},
        match_ms={1_000: 10, 10_000: ms},
    )


def grouping(compared: float, ms: float = 90, first: float = 10) -> Seen:
    return [
        *line(DUCK, predicates={1_000: 400, 10_000: compared}, match_ms={1_000: first, 10_000: ms}),
        *line("sql-sequential-duckdb", predicates={10_000: 10_000}, match_ms={10_000: 100}),
    ]


def runs(*times: float) -> Seen:
    return [replace(each, measured={"run_ms": list(times)}) for each in line(BIT, run_ms={1: 1})]


CASES = [
    Case("TO-2.1.domain", CONFIRMED, settings("table", "stage1_ms", (1, 1), (2, 2), (3, 3))),
    Case("TO-2.1.domain", NOT_CONFIRMED, settings("table", "stage1_ms", (1, 1), (2, 2), (1, 3))),
    Case("TO-2.1.domain", CONTRARY, settings("table", "stage1_ms", (3, 3), (2, 2), (1, 1))),
    Case(
        "TO-2.2.domain", CONFIRMED, settings("list", "stage1_ms", (1, 9), (1.2, 9), (1, 9), (1, 9))
    ),
    Case(
        "TO-2.2.domain",
        NOT_CONFIRMED,
        settings("list", "stage1_ms", (1, 9), (2, 9), (1, 9), (1, 9)),
    ),
    Case("TO-2.2.domain", CONTRARY, settings("list", "stage1_ms", (1, 9), (4, 9), (1, 9), (1, 90))),
    Case("TO-2.3.crossover", CONFIRMED, crossing("stage1_ms", (1, 9), (5, 5))),
    Case("TO-2.3.crossover", NOT_CONFIRMED, crossing("stage1_ms", (1, 2), (5, 5))),
    Case("TO-2.3.crossover", CONTRARY, crossing("stage1_ms", (6, 2), (5, 5))),
    Case("TO-2.4.domain", CONFIRMED, settings("table", "predicates_mb", (1, 1), (2, 2), (3, 3))),
    Case(
        "TO-2.4.domain", NOT_CONFIRMED, settings("table", "predicates_mb", (1, 1), (2, 2), (2, 2))
    ),
    Case("TO-2.4.domain", CONTRARY, settings("table", "predicates_mb", (3, 3), (2, 2), (1, 1))),
    Case(
        "TO-2.5.predicates",
        CONFIRMED,
        settings("list", "predicates_mb", (1, 9), (1, 9), (1, 9), (1, 9)),
    ),
    Case(
        "TO-2.5.predicates",
        NOT_CONFIRMED,
        settings("list", "predicates_mb", (1, 1), (1, 1), (1, 1), (1, 1)),
    ),
    Case(
        "TO-2.5.predicates",
        CONTRARY,
        settings("list", "predicates_mb", (1, 9), (4, 40), (1, 9), (1, 9)),
    ),
    Case("TO-2.6.crossover", CONFIRMED, crossing("predicates_mb", (1, 9), (5, 5))),
    Case("TO-2.6.crossover", NOT_CONFIRMED, crossing("predicates_mb", (1, 2), (5, 5))),
    Case("TO-2.6.crossover", CONTRARY, crossing("predicates_mb", (6, 2), (5, 5))),
    Case(
        "TO-2.6.w0",
        CONFIRMED,
        [*settings("list", "predicates_mb", (1, 2)), *refused("list, W0", 10**6)],
    ),
    Case("TO-2.6.w0", UNTESTABLE, settings("list", "predicates_mb", (1, 2))),
    Case(
        "TO-3.order",
        CONFIRMED,
        several("stage2_ms", counting_list=(1,), counting_bit=(2,), counting_byte=(6,)),
    ),
    Case(
        "TO-3.order",
        NOT_CONFIRMED,
        several("stage2_ms", counting_list=(1,), counting_bit=(2,), counting_byte=(2,)),
    ),
    Case(
        "TO-3.order",
        CONTRARY,
        several("stage2_ms", counting_list=(1,), counting_bit=(2,), counting_byte=(1.5,)),
    ),
    Case("TO-3.bits", CONFIRMED, several("stage2_ms", counting_bit=(2,), counting_byte=(6,))),
    Case("TO-3.bits", NOT_CONFIRMED, several("stage2_ms", counting_bit=(2,), counting_byte=(3,))),
    Case("TO-3.bits", CONTRARY, several("stage2_ms", counting_bit=(2,), counting_byte=(1,))),
    Case(
        "TO-3.memory", CONFIRMED, [*several("stage2_ms", counting_byte=(6,)), *refused(BYTE, 10**7)]
    ),
    Case("TO-3.memory", UNTESTABLE, several("stage2_ms", counting_byte=(6,))),
    Case("TO-3.memory", NOT_CONFIRMED, line(BYTE, stage2_ms={5_000_000: 6})),
    Case(
        "TO-3.memory", UNTESTABLE, [*line(BYTE, stage2_ms={10**6: 6}), *left_out(BYTE, 5 * 10**6)]
    ),
    Case("TO-4.list", CONFIRMED, memory(14, 50)),
    Case("TO-4.list", NOT_CONFIRMED, memory(60, 50)),
    Case("TO-4.list", CONTRARY, memory(500, 50)),
    Case("TO-4.deletion", CONFIRMED, memory(14, 50, 90)),
    Case("TO-4.deletion", NOT_CONFIRMED, memory(14, 50, 50)),
    Case("TO-4.deletion", CONTRARY, memory(14, 50, 20)),
    Case("TO-4.bits", CONFIRMED, memory(14, 51)),
    Case("TO-4.bits", NOT_CONFIRMED, memory(14, 500)),
    Case("TO-4.kdb", UNTESTABLE, memory(14, 50)),
    Case("TO-4.kdb", UNTESTABLE, []),
    Case(
        "TO-T1.database",
        CONFIRMED,
        several("match_ms", counting_bit=(1, 5), sql_grouping_duckdb=(20, 90)),
    ),
    Case(
        "TO-T1.database",
        NOT_CONFIRMED,
        several("match_ms", counting_bit=(1, 5), sql_grouping_duckdb=(20, 9)),
    ),
    Case(
        "TO-T1.database",
        CONTRARY,
        several("match_ms", counting_bit=(30, 5), sql_grouping_duckdb=(20, 4)),
    ),
    Case("TO-T1.order", CONFIRMED, several("match_ms", counting_list=(1, 5), counting_bit=(2, 9))),
    Case(
        "TO-T1.order", NOT_CONFIRMED, several("match_ms", counting_list=(1, 5), counting_bit=(2, 5))
    ),
    Case("TO-T1.order", CONTRARY, several("match_ms", counting_list=(3, 50), counting_bit=(2, 5))),
    Case("TO-T1.ratio", CONFIRMED, several("match_ms", counting_list=(1, 5), counting_bit=(2, 9))),
    Case(
        "TO-T1.ratio",
        NOT_CONFIRMED,
        several("match_ms", counting_list=(1, 5), counting_bit=(20, 9)),
    ),
    Case("TO-T1.ratio", CONTRARY, several("match_ms", counting_list=(3, 50), counting_bit=(2, 5))),
    Case("TO-T1.best", CONFIRMED, best(10)),
    Case("TO-T1.best", NOT_CONFIRMED, best(17)),
    Case("TO-T1.best", NOT_CONFIRMED, best(10, x=1_000)),
    Case("TO-T1.best", CONTRARY, best(40)),
    Case(
        "TO-T1.kdb", UNTESTABLE, several("match_ms", counting_list=(1,), sql_grouping_duckdb=(20,))
    ),
    Case("TO-T2.bits", CONFIRMED, loads(1, 2, 3)),
    Case("TO-T2.bits", NOT_CONFIRMED, loads(1, 2, 0.5)),
    Case("TO-T2.bits", CONTRARY, loads(4, 2, 3)),
    Case("TO-T2.overtaken", CONFIRMED, overtaken(5, 50, 900, 9_000)),
    Case("TO-T2.overtaken", NOT_CONFIRMED, overtaken(5, 50, 90, 900)),
    Case("TO-T2.overtaken", NOT_CONFIRMED, overtaken(5, 500, 900, 9_000)),
    Case("TO-T2.overtaken", CONTRARY, overtaken(50, 500, 900, 9_000)),
    Case("TO-T2.quadratic", CONFIRMED, several("load_ms", counting_list=(1, 90))),
    Case("TO-T2.quadratic", NOT_CONFIRMED, several("load_ms", counting_list=(1, 10))),
    Case("TO-T2.quadratic", CONTRARY, several("load_ms", counting_list=(1, 5))),
    Case("TO-T2.kdb", UNTESTABLE, loads(1, 2, 3)),
    Case("TO-T2.kdb", UNTESTABLE, []),
    Case("TO-ops.constant", CONFIRMED, operations(12, 11)),
    Case("TO-ops.constant", NOT_CONFIRMED, operations(12, 50)),
    Case("TO-ops.constant", CONTRARY, operations(900, 500)),
    Case("TO-sql.sequential", CONFIRMED, sequential(10_000, 90)),
    Case("TO-sql.sequential", NOT_CONFIRMED, sequential(10_000, 11)),
    Case("TO-sql.sequential", CONTRARY, sequential(1_000, 11)),
    Case("TO-sql.grouping", CONFIRMED, grouping(400)),
    Case("TO-sql.grouping", NOT_CONFIRMED, grouping(9_000)),
    Case("TO-sql.grouping", CONTRARY, grouping(12_000)),
    Case("TO-sql.associations", CONFIRMED, grouping(400)),
    Case("TO-sql.associations", NOT_CONFIRMED, grouping(400, ms=11)),
    Case("TO-sql.associations", CONTRARY, grouping(400, ms=5)),
    Case("TO-var.small", CONFIRMED, runs(1, 1.0001)),
    Case("TO-var.small", NOT_CONFIRMED, runs(1, 1.02)),
    Case("TO-var.small", CONTRARY, runs(1, 1.5)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.claim}, {case.standing}")
def test_a_claim_says_what_the_figures_say(case: Case) -> None:
    given = experiment(case.claim.rpartition(".")[0])
    assert judged(given, case).standing is case.standing


def test_every_claim_has_cases() -> None:
    tried = {case.claim for case in CASES}
    known = {
        claim.id
        for name in EXPERIMENTS
        if name.startswith("TO-")
        for claim in experiment(name).claims
    }
    assert tried == known
