"""`tamis spark backtest`, as a user calls it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from pyspark.sql import SparkSession

from tamis.errors import counted
from tamis.operators import registry
from tests.integration.spark.backtest_offers import YAML, Past, engine_of, offers, written
from tests.unit.cli.calls import Capture, refused, run

pytestmark = pytest.mark.usefixtures("small_shares")


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    """The first words of a command."""
    (tmp_path / "schema.yaml").write_text(YAML, encoding="utf-8")
    folder = written(tmp_path / "events", offers(300))
    return (*("spark", "backtest", "--events", str(folder)),
            *("--schema", str(tmp_path / "schema.yaml")))  # fmt: skip


def test_one_condition(
    given: tuple[str, ...], spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert run(*given, "price < 5", "--time", "at", "--columns", "lot", "--out", str(out)) == 0
    said = capsys.readouterr().out
    events = offers(300)
    prices = [each.get("price") for each in events]
    matched = sum(each is not None and each < 5 for each in prices)
    dead, without = prices.count(None), sum("at" not in each for each in events)
    assert f"1   price < 5  {matched:>6}" in said
    assert "over time: at from 2024-03-01 to 2024-03-04, by 2 hours" in said
    samples = said.partition("Samples:\n")[2].splitlines()
    assert samples[0].split() == ["id", "event", "lot"]
    assert samples[1].split()[0] == "1"
    assert max(map(len, samples[:3])) <= 80
    assert (
        f"{matched:,} pairs; {matched:,} events matched, {300 - matched - dead:,} did not, "
        f"{counted(dead, 'is', 'are')} dead" in said
    )
    assert f"{without} events have no at" in said
    assert f"dead: {dead} × event type offer: 'price' is mandatory" in said
    assert "samples.parquet, dead.parquet and plot.png" in said
    assert "▁" in said
    files = {each.name for each in out.iterdir()}
    assert files == {"counts.parquet", "over_time.parquet", "totals.parquet", "samples.parquet",
                     "dead.parquet", "plot.png"}  # fmt: skip
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    counts = parquet.read_table(out / "counts.parquet").to_pylist()
    assert [(row["subscription"], row["matched"]) for row in counts] == [(1, matched)]
    assert parquet.read_table(out / "totals.parquet")["events"].to_numpy().sum() == 300
    assert "holds a back-test already" in refused(capsys, *given, "price < 5", "--out", str(out))


@pytest.mark.parametrize("ending", [".txt", ".csv", ".jsonl", ".parquet", "folder"])
def test_conditions_from_a_file(
    ending: str, given: tuple[str, ...], spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    texts = [f"price < {at}" for at in range(1, 30)] + ["prise < 3", "price <"]
    path = tmp_path / f"conditions{ending}"
    table = pa.table({"id": [f"c{at}" for at in range(1, 32)], "condition": texts})
    match ending:
        case ".txt":
            path.write_text("\n".join(texts), encoding="utf-8")
        case ".csv":
            csv.write_csv(table, path)
        case ".jsonl":
            lines = [json.dumps(row) for row in table.to_pylist()]
            path.write_text("\n".join(lines), encoding="utf-8")
        case _:
            path.mkdir() if ending == "folder" else None
            parquet.write_table(table, path / "0.parquet" if ending == "folder" else path)
    assert run(*given, "--conditions", str(path), "--out", str(tmp_path / "out")) == 0
    said = capsys.readouterr().out
    assert "2 of 31 subscriptions were refused:" in said
    place = {".txt": "line 30", ".csv": "line 31", ".jsonl": "line 30"}.get(ending, "row 30")
    assert f"{place}: unknown attribute 'prise'" in said
    assert "did you mean 'price'?" in said
    assert "14 more" in said
    assert "0 of 29 conditions never matched" in said
    counts = parquet.read_table(tmp_path / "out" / "counts.parquet")
    prices = [each["price"] for each in offers(300) if "price" in each]
    assert counts["matched"].to_pylist() == [
        sum(price < limit for price in prices) for limit in range(1, 30)
    ]
    assert (tmp_path / "out" / "plot.png").exists()


def test_a_log_and_an_index_as_a_command(
    log: Past,
    spark: SparkSession,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    engine_of().save(tmp_path / "engine")
    asked = ("spark", "backtest", "--log", str(tmp_path / "log"))
    assert run(*asked, "--subscriptions", str(tmp_path / "engine"), "--buckets", "9") == 0
    said = capsys.readouterr().out
    assert f"{len(log.events):,} events in " in said
    assert re.search(r"never +price > 1000 +0 +0% +– +–", said)
    assert "1 of 5 conditions never matched" in said
    assert "by 50" in said
    assert run(*asked, "price < 5", "--samples", "0") == 0
    assert "Samples" not in capsys.readouterr().out


_WAITING = """
from pathlib import Path
from time import sleep
from tamis import operator

@operator(reads=("price",), run="here")
def waitsForAWord(price):
    Path({folder!r}, "asked").touch()
    while not Path({folder!r}, "word").exists():
        sleep(0.05)
    return True
"""


@pytest.fixture
def waiting(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, ...]]:
    """A condition that keeps its tasks waiting, once they have begun."""
    module = "waiting_for_a_word"
    path = tmp_path / f"{module}.py"
    path.write_text(_WAITING.format(folder=str(tmp_path)), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(path))
    yield "price < 5 and waitsForAWord()", "--operators", module
    (tmp_path / "word").touch()
    registry._REGISTERED.pop("waitsForAWord", None)
    sys.modules.pop(module, None)


def test_ctrl_c_leaves_nothing(
    given: tuple[str, ...], waiting: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    out, over = tmp_path / "out", Event()

    def interrupt() -> None:
        while not over.wait(0.05):
            if (tmp_path / "asked").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    interrupting = Thread(target=interrupt)
    interrupting.start()
    try:
        code = run(*given, *waiting, "--out", str(out))
    finally:
        over.set()
        interrupting.join()
    said = capsys.readouterr()
    assert code == 130, said
    assert "Traceback" not in said.out + said.err
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("missing", [False, True])
def test_without_a_picture_there_are_counts(
    missing: bool,
    given: tuple[str, ...],
    spark: SparkSession,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times cannot be drawn, or matplotlib is missing."""

    def plot(*_: object) -> None:
        assert not (tmp_path / "out" / "counts.parquet").exists(), "these come last"
        raise ValueError("arange: cannot compute length")

    if missing:
        for name in list(sys.modules):
            if name.partition(".")[0] == "matplotlib":
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    else:
        monkeypatch.setattr("tamis.lab.plots.backtest.plot", plot)
    assert run(*given, "price < 5", "--out", str(tmp_path / "out")) == 0
    why = (
        "a picture needs matplotlib: pip install 'tamis[lab]'" if missing else "no picture: arange"
    )
    assert why in capsys.readouterr().out
    assert (tmp_path / "out" / "counts.parquet").exists()
    assert not (tmp_path / "out" / "plot.png").exists()


def test_mistakes(given: tuple[str, ...], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,text\n1,price < 3\n", encoding="utf-8")
    plain = given[:2]
    for arguments, said in (
        (
            (*given, "price < 5", "prise < 5"),
            "unknown attribute 'prise' (line 1, column 1)\n  prise < 5\n  ^^^^^",
        ),
        (given, "nothing to test: give a CONDITION, --conditions or --subscriptions"),
        ((*plain, "price < 5", *given[4:6]), "either --events or --log"),
        ((*given, "--conditions", "x.txt", "--subscriptions", "x"), "give only one of"),
        ((*plain, "price < 5", *given[2:4]), "--schema of the events"),
        ((*given, "--subscriptions", "x"), "leave --schema out: an index has its own"),
        ((*given, "price < 5", "--time", "att"), "no column 'att'; did you mean 'at'"),
        ((*given, "--conditions", str(tmp_path / "x.txt")), "there is no such file"),
        (
            (*given, "--conditions", str(path)),
            "expected the columns id and condition, got id, text",
        ),
        ((*plain, "price < 5", "--log", str(tmp_path)), "log"),
    ):
        assert said in refused(capsys, *arguments)
    path.write_text("id,condition\n1,prise < 3\n", encoding="utf-8")
    said = refused(capsys, *given, "--conditions", str(path))
    assert "1 of 1 subscription was refused" in said
    assert "there is no subscription left" in said
