"""The redundancy of a broker's subscriptions, found in a process of its own.

    python -m tamis.broker.questions.live_redundancy < QUESTION

The question is a stream of Arrow with id, condition and language, and in its metadata what else is
to know (`RedundancyQuestion`). Each line of the output is JSON: `{"step": "Searching covers",
"done": 3, "total": 8}` on the way, then `{"result": {...}}` or `{"error": "..."}`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from tamis.broker.questions.redundancy_reports import QUESTION
from tamis.engine import Engine
from tamis.engine.redundancy.find_redundancy import of_table
from tamis.engine.redundancy.redundancy_report import RedundancyReport
from tamis.errors import TamisError
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.store.subscription_snapshot import Id

_NICE = 10  # the broker comes first
_SAYS = 0.3  # seconds between two lines of progress
_TEXT = 300  # characters of a condition that are shown
_COPIES = 8  # of a group that are shown
_REFUSED = "conditions that are not valid now"


class RedundancyQuestion(msgspec.Struct):
    """What the metadata of the stream has."""

    schema: dict[str, Any]
    operators: tuple[str, ...]
    shown: int


class ReportExcerpt(NamedTuple):
    """A report with the first entries of each kind, and their conditions."""

    report: RedundancyReport
    refused: list[Id]
    texts: dict[Id, str]
    shown: int

    def to_dict(self) -> dict[str, Any]:
        report, shown = self.report, self.shown
        undecided = report.undecided | ({_REFUSED: self.refused} if self.refused else {})
        return {
            "subscriptions": report.subscriptions,
            "redundant": report.redundant,
            "copies": sum(len(group) - 1 for group in report.duplicates),
            "duplicates": {
                "many": len(report.duplicates),
                "entries": [
                    {"many": len(group), "entries": self._entries(group[:_COPIES])}
                    for group in report.duplicates[:shown]
                ],
            },
            "covered": {
                "many": len(report.covered),
                "entries": [self._entries(each) for each in report.covered[:shown]],
            },
            "never_true": self._few(report.never_true),
            "always_true": self._few(report.always_true),
            "undecided": [
                {"reason": reason, **self._few(ids)} for reason, ids in undecided.items()
            ],
        }

    def _few(self, ids: list[Id]) -> dict[str, Any]:
        return {"many": len(ids), "entries": self._entries(ids[: self.shown])}

    def _entries(self, ids: Sequence[Id]) -> list[dict[str, Any]]:
        return [{"id": id, "condition": self.texts[id]} for id in ids]


class _ProgressLines:
    """Says how far the report is, a few times a second."""

    def __init__(self) -> None:
        self._step, self._next = "", 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        if step == self._step and time.monotonic() < self._next:
            return
        self._step, self._next = step, time.monotonic() + _SAYS
        _say({"step": step, "done": done, "total": total})


def _excerpt(table: pa.Table, asked: RedundancyQuestion) -> ReportExcerpt:
    operators = EnabledOperators.named(asked.operators)
    with Engine(Schema.from_dict(asked.schema), operators=operators) as engine:
        report, refused = of_table(engine, table, _ProgressLines(), stored=True)
    ids = table["id"].to_pylist()
    shown = asked.shown
    wanted = {id for group in report.duplicates[:shown] for id in group[:_COPIES]}
    wanted |= {id for pair in report.covered[:shown] for id in pair}
    wrong = [ids[place] for place, _ in refused]
    for some in (report.never_true, report.always_true, wrong, *report.undecided.values()):
        wanted |= {*some[:shown]}
    places = [at for at, id in enumerate(ids) if id in wanted]
    found = table["condition"].take(places).to_pylist()
    texts = {ids[at]: text[:_TEXT] for at, text in zip(places, found, strict=True)}
    return ReportExcerpt(report, wrong, texts, shown)


def main() -> int:
    """Answer the question on the input."""
    os.nice(_NICE)
    with pa.ipc.open_stream(sys.stdin.buffer) as given:
        question = (given.schema.metadata or {})[QUESTION]
        asked = msgspec.json.decode(question, type=RedundancyQuestion)
        table = given.read_all()
    try:
        found = _excerpt(table, asked)
    except TamisError as why:
        _say({"error": str(why)})
        return 1
    _say({"result": found.to_dict()})
    return 0


def _say(what: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
