"""What the experiments of TOPSS share: its matchers as published, and its workload W4.

The paper ran C programs and the database Kdb on a Pentium III of 900 MHz. Its times are not ours,
and Kdb is not here: DuckDB and PostgreSQL stand in for it. DuckDB keeps columns in memory, in this
process, as Kdb does. PostgreSQL keeps rows, in a server of its own.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

from tamis import workload
from tamis.lab.experiments.experiment import Curve, LabStep, Mode
from tamis.lab.papers.matcher_experiment import MatcherExperiment, Options, given
from tamis.workload import Workload

BYTE, BIT, LIST = "counting-byte", "counting-bit", "counting-list"
TABLE: Options = {"predicates": "table", "domain": 100_001, "skip_empty": False}
LINEAR_LIST: Options = {"predicates": "ordered-list", "search": "linear"}
PUBLISHED: dict[str, Options] = {
    BYTE: TABLE,
    BIT: {**TABLE, "counters": "bytes"},
    LIST: {**TABLE, "grow": "constant"},
}
_PREDICATES: tuple[Options, ...] = ({}, {"skip_empty": False}, {"predicates": "ordered-list"})
GRIDS: dict[str, tuple[Options, ...]] = {
    BYTE: _PREDICATES,
    BIT: tuple(
        {**each, "counters": counters}
        for each, counters in product(_PREDICATES, ("planes", "bytes"))
    ),
    LIST: _PREDICATES,
}

GROUPING, SEQUENTIAL = "sql-grouping", "sql-sequential"
DUCKDB, POSTGRESQL = "duckdb", "postgresql"


def stand_in(matcher: str, database: str) -> str:
    """The name of a curve: a matcher in a database."""
    return f"{matcher}-{database}"


def database_curves(*matchers: str) -> tuple[Curve, ...]:
    """Matchers in both databases, with a statement generated for each event, as published."""
    return tuple(
        Curve(
            stand_in(matcher, database),
            Mode.PAPER,
            {"database": database, "statement": "per-event"},
        )
        for matcher in matchers
        for database in (DUCKDB, POSTGRESQL)
    )


STAND_INS = tuple(stand_in(GROUPING, database) for database in (DUCKDB, POSTGRESQL))


class TopssExperiment(MatcherExperiment):
    """An experiment on W4: 10 attributes of 10 values, 1 to 5 predicates a subscription."""

    paper: ClassVar[str] = "topss"
    published = PUBLISHED
    grids = GRIDS
    fixed = given(setting="W4")
    compared_by = "match_ms"

    def workload(self, step: LabStep, seed: int) -> Workload:
        setting = step.parameters["setting"]
        return workload.make("topss", step.parameters["n"], seed=seed, setting=setting)
