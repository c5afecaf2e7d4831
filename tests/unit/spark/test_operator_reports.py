"""What operators did in many processes adds up, and nothing is counted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tamis.spark
from tamis import Engine, Schema, operator
from tamis.errors import SparkError
from tamis.operators import CallCounts, Report
from tamis.operators.report import ConstantFaults
from tamis.spark.runtime.operator_reports import (
    clear,
    noted_calls,
    read_report,
    report_document,
    since,
    total,
)

SCHEMA = Schema.from_dict(
    {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}
)


def _engine() -> Engine:
    @operator(name="reportsOdd", reads=("n",), run="here")
    def odd(n: int) -> bool:
        if n == 3:
            raise ValueError("three")
        return n % 2 == 1

    engine = Engine(SCHEMA, operators=[odd])
    engine.subscribe("n < 9 and reportsOdd()", id="a")
    return engine


def _match(engine: Engine, *numbers: int) -> None:
    engine.match_batch([{"n": number} for number in numbers])


def test_sums_and_differences() -> None:
    early = Report((CallCounts("a", events=5, calls=2, raised=1, last="x"),), given_up=1)
    late = Report(
        (CallCounts("a", events=9, calls=3, raised=1, last="x"), CallCounts("b", 4, 4)), given_up=3
    )
    fresh = since(early, late)
    assert fresh == Report((CallCounts("a", events=4, calls=1), CallCounts("b", 4, 4)), given_up=2)
    assert total([early, fresh]) == late
    assert since(late, late) == Report(())
    assert total([]) == Report(())
    assert read_report(json.loads(json.dumps(report_document(late)))) == late


def test_faulty_constants_and_ignored_names_add_up() -> None:
    def some(faults: int, **ignored: int) -> Report:
        constants = {"far(XXX)": ConstantFaults(faults, "no such place")}
        counts = CallCounts(
            "far", 9 * faults, 9, hits=3, raised=faults, last="x", constants=constants
        )
        return Report((counts,), ignored=ignored)

    early, late = some(1, prise=2), some(4, prise=5, colour=1)
    both = total([early, late])
    assert both["far"].constants == {"far(XXX)": ConstantFaults(5, "no such place")}
    assert both["far"].hits == 6
    assert both.ignored == {"prise": 7, "colour": 1}
    fresh = since(early, late)
    assert fresh["far"].constants["far(XXX)"].faults == 3
    assert fresh.ignored == {"prise": 3, "colour": 1}
    assert read_report(json.loads(json.dumps(report_document(late)))) == late
    old = {"operators": [{"operator": "far", "events": 1}], "given_up": 0}
    assert read_report(old) == Report((CallCounts("far", 1),)), "written before"


def test_what_a_block_asked_is_noted(tmp_path: Path) -> None:
    engine, folder = _engine(), str(tmp_path / "report")
    _match(engine, 1, 3)  # before
    for _ in range(2):
        with noted_calls([engine], folder):
            _match(engine, 1, 2, 3, 99)
    with noted_calls([engine], folder):
        _match(engine, 99)
    with noted_calls([engine], None):
        _match(engine, 1)
    report = tamis.spark.report(folder)
    (count,) = report
    assert (count.operator, count.events, count.raised) == ("reportsOdd", 6, 2)
    assert count.last is not None
    assert "three" in count.last
    assert len(list(Path(folder).iterdir())) == 1, "a process has a file"
    clear(Path(folder))
    assert tamis.spark.report(folder) == Report(())


def test_a_block_that_fails_has_asked_too(tmp_path: Path) -> None:
    engine = _engine()

    def fail() -> None:
        _match(engine, 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), noted_calls([engine], str(tmp_path)):
        fail()
    assert tamis.spark.report(tmp_path)["reportsOdd"].events == 1


_OTHER = """
import sys
from tests.unit.spark.test_operator_reports import _engine, _match
from tamis.spark.runtime.operator_reports import noted_calls
engine = _engine()
with noted_calls([engine], sys.argv[1]):
    _match(engine, 1, 2, 3)
"""


@pytest.mark.slow
def test_processes_add_up(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _OTHER, str(tmp_path)], check=True, cwd=Path.cwd())
    report = tamis.spark.report(tmp_path)
    assert (report["reportsOdd"].events, report.faults) == (6, 2)
    newest = tmp_path / "zz.json"
    newest.write_text(
        json.dumps(report_document(Report((CallCounts("reportsOdd", 1, raised=1, last="new"),))))
    )
    os.utime(newest, (time.time(), time.time() + 60))
    assert tamis.spark.report(tmp_path)["reportsOdd"].last == "new"


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    engine = _engine()
    with (
        pytest.raises(SparkError, match="a worker cannot note the calls"),
        noted_calls([engine], str(tmp_path / "file")),
    ):
        _match(engine, 1)
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(SparkError, match="is not a report"):
        tamis.spark.report(tmp_path)
