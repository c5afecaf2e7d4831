"""The commands of docs/command-line.md run, on small files with the names that are shown there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Engine, Schema
from tamis.client import Client
from tests.acceptance.pages import ROOT
from tests.serving import running
from tests.unit.cli.calls import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
# By section, what does not run here: it does not end, takes long, or needs another program.
ELSEWHERE = {
    "Show a plan": ("STATS",),
    "Run a service": ("serve", "switch-matching", "revoke"),
    "Spark jobs": ("demo", "--log", "--data"),
    "Call a service": ("tail", "dead", "export", "--sink", "keys"),
    "Fill and read a log": ("-f",),
    "Maintain a log": ("postgresql://HOST/NAME", "upgrade", "extend"),
}
SMALL = {"1e6": "2000", "1e5": "500", "more.parquet": "lots.jsonl"}
FOUND = {"redundancy": 1, "--bad": 1}  # exit codes that say that something was found
LOTS = [
    {"lot": number, "title": "oak desk", "category": "table", "price": price, "sold": False}
    for number, price in enumerate((3.0, 7.0, 40.0))
]


def _commands(section: str) -> Iterator[list[str]]:
    """The words of each command of a section that runs here."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    block = re.search(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert block, section
    for line in block[1].splitlines():
        _, *words = shlex.split(line, comments=True)
        if not set(words) & set(ELSEWHERE.get(section, ())):
            yield [SMALL.get(word, word) for word in words]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the files."""
    monkeypatch.chdir(tmp_path)
    document = {
        "attributes": {"lot": "integer", "title": "text", "category": "text", "price": "decimal"}
        | {"sold": "boolean", "tags": "text"},
        "event_types": {
            "event": dict.fromkeys(("lot", "title", "category", "price", "sold"), "optional")
            | {"tags": "optional multiple"}
        },
    }
    schema = Schema.from_dict(document)
    Path("auctions.yaml").write_text(schema.to_yaml())
    wanted = pa.table(
        {"id": [6, 7, 8], "condition": ["price < 5", "title = oak", "not price >= 5"]}
    )
    pq.write_table(wanted, "wanted.parquet")
    pq.write_table(wanted, "searches.parquet")
    conditions = {"bargains": "price < 5", "ann": "price < 5 and sold", "bob": "price < 9"}
    rows = [f"{id},{condition}" for id, condition in conditions.items()]
    Path("wanted.csv").write_text("\n".join(["id,condition", *rows, ""]))
    lots = pa.Table.from_pylist(LOTS)
    rows = [",".join(str(value) for value in lot.values()) for lot in LOTS]
    Path("lots.csv").write_text("\n".join([",".join(lots.column_names), *rows, ""]))
    lines = [f'{{"title": "oak", "price": {lot["price"]}}}\n' for lot in LOTS]
    Path("lots.jsonl").write_text("".join(lines))
    engine = Engine(schema)
    engine.subscribe("price < 5", id="bargains")
    engine.match_batch([{"price": 4}])
    engine.save("auctions.index")
    return tmp_path


def _run(section: str, capsys: pytest.CaptureFixture[str], **places: str) -> int:
    """Run the commands of a section with words of the page in place of others; how many."""
    many = 0
    for words in _commands(section):
        command = [places.get(word, word) for word in words]
        command += ["--yes"] if command[0] == "erase" else []  # it asks
        wanted = next((code for word, code in FOUND.items() if word in command), 0)
        assert run(*command) in (0, wanted), f"tamis {shlex.join(command)}: {capsys.readouterr()}"
        many += 1
    return many


@pytest.mark.parametrize(
    ("section", "many"),
    [
        ("Check a schema and a condition", 5),
        ("Find redundant subscriptions", 2),
        ("Match files", 6),
        ("List the parts", 3),
        ("Show a plan", 3),
        ("Fill and read a log", 7),
    ],
)
def test_commands_on_files(
    section: str,
    many: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (folder / "lots.jsonl").open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert _run(section, capsys) == many


def test_commands_on_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("log", "create", "LOG", "--schema", "auctions.yaml") == 0
    assert _run("Maintain a log", capsys) == 4


def test_commands_on_a_data_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        running(folder / "DATA", "--schema", str(folder / "auctions.yaml")) as server,
        Client(server.address) as client,
    ):
        client.publish([{"price": 4.0}] * 20)
    assert _run("Run a service", capsys) == 3
    assert _run("Back up, restore and erase", capsys) == 6


def test_commands_that_call_a_service(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(folder / "data", "--schema", str(folder / "auctions.yaml")) as server:
        monkeypatch.setenv("TAMIS_SERVER", server.address)
        with Client(server.address) as client:
            lease = client.subscribe("price < 5", lease=timedelta(hours=1))
        places = {"ID": str(lease.id), "TICKET": lease.ticket}
        assert _run("Call a service", capsys, **places) == 10


@pytest.mark.xdist_group("spark")
def test_commands_on_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.version
    assert _run("Spark jobs", capsys) == 5
