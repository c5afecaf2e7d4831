"""The programs in examples/ run as their README says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.client import Client
from tests.acceptance.pages import ROOT
from tests.serving import running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples"
FILES = [str(EXAMPLES / name) for name in ("lots.yaml", "searches.csv", "lots.jsonl")]


def test_the_readme_lists_every_file() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.iterdir():
        assert f"]({path.name})" in page or path.name in ("README.md", "__pycache__"), path.name


def test_saved_searches() -> None:
    command = [sys.executable, str(EXAMPLES / "saved_searches.py"), *FILES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert re.findall(r"^(.*) → (.*)$", ran.stdout, re.MULTILINE) == [
        ("Plain chair", "ann"),
        ("Small oak desk", "bob"),
        ("Small oak desk", "cleo"),
        ("Oak shelf", "cleo"),
    ]
    assert "yes  price < 50: price is 40.0" in ran.stdout


@pytest.mark.parametrize("name", ["saved_searches.py", "webhook.py"])
def test_without_arguments_a_program_says_what_it_takes(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert f"python {name} " in ran.stderr


@pytest.mark.slow
def test_the_webhook_takes_what_the_service_signed_and_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--allow-sink", "127.0.0.1") as server:
        receiver = subprocess.Popen(
            [sys.executable, EXAMPLES / "webhook.py", server.address, "price < 5"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert receiver.stdout is not None
        try:
            first = receiver.stdout.readline()
            port = re.search(r"sends to http://127.0.0.1:(\d+)/", first)
            assert port is not None, first
            # Somebody else's message.
            forged = HTTPConnection("127.0.0.1", int(port[1]))
            forged.request("POST", "/", b'{"data": {"event": "forged"}}')
            assert forged.getresponse().status == 400
            forged.close()
            with Client(server.address) as client:
                client.publish({"price": 9, "title": "dear"})
                client.publish({"price": 4, "title": "oak"})
            assert receiver.stdout.readline() == "{'price': 4, 'title': 'oak'}\n"
        finally:
            receiver.send_signal(signal.SIGINT)
            assert receiver.wait(60) == 0, "Ctrl-C ends the subscription"
            receiver.stdout.close()


@pytest.mark.xdist_group("spark")
def test_the_batch_job(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("spark_batch", EXAMPLES / "spark_batch.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    lots = tmp_path / "lots.jsonl"
    lots.write_text(Path(FILES[2]).read_text(encoding="utf-8") + json.dumps({"price": "x"}))
    out = os.fspath(tmp_path / "found.parquet")
    program.main(spark, *FILES[:2], os.fspath(lots), out)
    assert capsys.readouterr().out == f"4 matches and 1 bad lots; see {out}\n"
    rows = sorted((row["subscription"], row["price"]) for row in spark.read.parquet(out).collect())
    assert rows == [("ann", 40.0), ("bob", 150.0), ("cleo", 90.0), ("cleo", 150.0)]
