"""All of it through a Spark Connect server, which is a process of its own, and so is its client.

What the client is to do is a function that is sent to it, and what it found comes back.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame

import tamis.spark
from tamis import Engine, Schema
from tamis.errors import SparkError
from tamis.operators import operator
from tamis.spark.jobs.compile_index import compile_conditions, compile_log
from tamis.spark.jobs.match_files import MatchedFiles, match_files
from tamis.spark.runtime import connect_server as connecting
from tamis.spark.runtime.job_runner import cores, run_job
from tamis.store.versions import Versions
from tamis.workload import dexin
from tamis.workload.base import Workload
from tamis.workload.tables import conditions
from tests.connect import Client, Server
from tests.integration.spark.streams import run_stream
from tests.integration.spark.test_stream import Story
from tests.integration.spark.workload_files import OFFERS, Rows, expected, written
from tests.loaded import loaded

EVENTS = 400
FILES = 2
LINES = [
    (1, '{"price": 3, "tags": ["oak"], "seller": {"rating": 5}}'),
    (2, '{"price": 80.5, "tags": "oak", "seller": {"rating": 4}}'),
    (3, '{"tags": "no price"}'),
    (4, "no JSON"),
]


# -- DataFrames ------------------------------------------------------------------------------------


def _session() -> tuple[int, str | None, list[str]]:
    spark = tamis.spark.session()
    said = []
    for other in ("local[1]", "sc://localhost:1"):
        with pytest.raises(SparkError, match="this process has a session") as refusal:
            tamis.spark.session(other)
        said.append(str(refusal.value))
    return cores(spark), spark.conf.get("spark.sql.session.timeZone"), said


def test_the_session_knows_where_it_is(connect: Server, client: Client) -> None:
    side_by_side, zone, said = client.asked(_session)
    assert (side_by_side, zone) == (2, "America/New_York")
    assert all(f"a session on {connect.url} already" in each for each in said)


def _frames() -> tuple[Rows, Rows, Rows, str]:
    @operator(name="isRound", reads=("price",), run="here")
    def is_round(price: float) -> bool:
        return price == int(price)

    spark = tamis.spark.session()
    engine = Engine(OFFERS, operators=[is_round])
    engine.subscribe('tags = "oak" and seller.rating >= 4', id="oak")
    engine.subscribe("price < 90 and isRound()", id="round")
    lines = spark.createDataFrame(LINES, "lot int, value string")
    events = lines.transform(tamis.spark.from_json(OFFERS, keep=["lot"]))
    match = tamis.spark.match(engine, id="lot", keep=["price"])
    found = events.where("dead is null").transform(match)
    good, bad = tamis.spark.validate(OFFERS)(events.drop("dead"))
    with pytest.raises(Exception, match="'price' is mandatory") as refusal:
        events.transform(match).collect()
    parted = [_rows(frame.select("lot").collect()) for frame in (good, bad)]
    return _rows(found.collect()), parted[0], parted[1], type(refusal.value).__module__


def _rows(found: list[Any]) -> Rows:
    return sorted(tuple(row) for row in found)


def test_lines_are_read_checked_and_matched(client: Client) -> None:
    found, good, bad, module = client.asked(_frames)
    assert found == [(1, "oak", 3.0), (1, "round", 3.0), (2, "oak", 80.5)]
    assert (good, bad) == ([(1,), (2,)], [(3,), (4,)])
    assert module == "pyspark.errors.exceptions.connect"


def _made(folder: Path) -> tuple[Workload, Engine, Rows]:
    """Files of events, and the pairs of their numbers and subscriptions."""
    workload = dexin.make(1_000)
    engine = loaded(workload)
    return workload, engine, expected(engine, written(workload, folder, EVENTS, FILES))


def _matched(folder: Path) -> tuple[Rows, Rows, set[int]]:
    spark = tamis.spark.session()
    match = tamis.spark.match(folder / "engine")
    batch = spark.read.parquet(str(folder / "events"))
    streamed, batches = _stream(folder, match)
    return _rows(batch.transform(match).collect()), streamed, batches


def _stream(folder: Path, match: Callable[[DataFrame], DataFrame]) -> tuple[Rows, set[int]]:
    spark = tamis.spark.session()
    batch = spark.read.parquet(str(folder / "events"))
    reading = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1)
    events = reading.parquet(str(folder / "events"))
    stream = run_stream(events.transform(match), folder)
    found = spark.read.parquet(str(folder / "found")).collect()
    return _rows(found), {each["batchId"] for each in stream.recentProgress}


def test_answers_are_those_of_the_engine_in_batch_and_stream(
    client: Client, tmp_path: Path
) -> None:
    _, engine, wanted = _made(tmp_path / "events")
    engine.save(tmp_path / "engine")
    batch, streamed, batches = client.asked(_matched, tmp_path)
    assert wanted
    assert batch == streamed == wanted
    assert batches == set(range(FILES))


# -- the log, and jobs -----------------------------------------------------------------------------


def _streamed(folder: Path) -> tuple[Rows, list[int]]:
    spark = tamis.spark.session()
    log = spark.readStream.format("tamis").option("index", str(folder / "index"))
    run_stream(log.load(str(folder / "log")), folder, sink="tamis_notifications")
    reading = spark.read.format("tamis_notifications")
    found = reading.load(str(folder / "found")).select("sequence", "subscription")
    dead = reading.option("kind", "dead").load(str(folder / "found")).select("sequence")
    return _rows(found.collect()), sorted(row.sequence for row in dead.collect())


def _compiled(story: Story, folder: Path) -> tuple[int, int]:
    made = compile_log(tamis.spark.session(), story.log, Versions(folder / "index"))
    return made.subscriptions, made.refused


def test_a_log_is_compiled_and_streamed(client: Client, tmp_path: Path) -> None:
    story = Story(tmp_path / "log", seed=7, text=True)
    story.write(15)
    live, refused = client.asked(_compiled, story, tmp_path)
    assert live > 0
    assert refused == 0
    story.write(15)
    found, dead = client.asked(_streamed, tmp_path)
    assert found == sorted(story.pairs)
    assert dead == sorted(story.dead)


def _files(folder: Path) -> tuple[int, int, list[str], MatchedFiles, set[int], Rows]:
    spark = tamis.spark.session()
    rows = spark.read.parquet(str(folder / "subscriptions"))
    wrong = spark.createDataFrame([(-1, "prise < 5")], "id long, condition string")
    schema = Schema.load(folder / "schema.yaml")
    made = compile_conditions(rows.union(wrong), Versions(folder / "index"), schema, shards=2)
    left: set[int] = set()

    def progress(done: int, of: int) -> None:
        left.add(of - done)

    done = match_files(
        spark, folder / "events", folder / "index", folder / "out", id="event_id", progress=progress
    )
    streamed, _ = _stream(folder, tamis.spark.match(folder / "index"))
    return made.subscriptions, made.refused, made.reasons, done, left, streamed


def test_conditions_are_compiled_and_files_matched(client: Client, tmp_path: Path) -> None:
    from tamis.model.schemas.document import to_yaml

    workload, engine, wanted = _made(tmp_path / "events")
    (tmp_path / "schema.yaml").write_text(to_yaml(engine.schema), encoding="utf-8")
    rows = workload.subscriptions
    table = pa.table({"id": rows["id"], "condition": conditions(rows)})
    parquet.write_table(table, tmp_path / "subscriptions")
    live, refused, reasons, done, left, streamed = client.asked(_files, tmp_path)
    assert (live, refused) == (len(engine), 1)
    assert "prise" in reasons[0]
    matched = len({event for event, _ in wanted})
    assert done[:4] == (EVENTS, matched, len(wanted), 0)
    assert min(left) == 0
    pairs = parquet.read_table(tmp_path / "out" / "notifications").to_pylist()
    assert sorted((row["event_id"], row["subscription"]) for row in pairs) == wanted
    assert streamed == wanted


_COMMANDS = """
import sys
import grpc
from concurrent.futures import ThreadPoolExecutor
from tamis.cli.main import _run
from tamis.spark.runtime import connect_server as connecting

url, folder = sys.argv[1:]
stranger = grpc.server(ThreadPoolExecutor(1))  # speaks gRPC, and knows nothing of Spark
port = stranger.add_insecure_port("127.0.0.1:0")
stranger.start()
connecting._WAIT = 0.5

def tamis(command, master=url):
    print(_run(["spark", *command.split(), "--master", master]))

generate = f"generate dexin --events 600 --subscriptions 300 --out {folder}/data"
tamis(generate, "sc://localhost:1")
tamis(generate, f"sc://127.0.0.1:{port}")
stranger.stop(None)
tamis(generate)

from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(url).getOrCreate()  # the user's own, which is left alone
data = f"{folder}/data"
given = f"--conditions {data}/subscriptions --schema {data}/schema.yaml"
tamis(f"compile {given} --index {folder}/index")
tamis(f"match --events {data}/events --subscriptions {folder}/index --out {folder}/out")
tamis(f"match --events {data}/none --subscriptions {folder}/index --count-only")
print(spark.range(3).count())
"""


def test_commands_take_a_server_for_their_master(connect: Server, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _COMMANDS, connect.url, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    away, stranger, *rest = ran.stderr.splitlines()
    assert away.startswith("tamis: no Spark Connect server answers at sc://localhost:1, for 0 sec")
    assert re.match(r"tamis: sc://127.0.0.1:\d+ gives no session: .*not found", stranger)
    assert len(rest) == 1, "of the folder that is not there"
    codes = [line for line in ran.stdout.splitlines() if line.isdigit()]
    assert codes == ["2", "2", "0", "0", "0", "2", "3"], ran.stdout
    events = parquet.read_table(tmp_path / "data" / "events")
    engine = Engine(Schema.load(tmp_path / "data" / "schema.yaml"))
    engine.subscribe_table(parquet.read_table(tmp_path / "data" / "subscriptions"))
    pairs = engine.match_batch(events.drop_columns("event_id")).total
    assert pairs
    assert f"{pairs} pairs" in ran.stdout


# -- servers that do not answer --------------------------------------------------------------------


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_WAIT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SparkError, match=f"no Spark Connect server answers at {url}"):
            connecting.connected(url, "tamis", {})


@pytest.mark.parametrize(
    "url", ["sc://", "sc://localhost:port", "sc://localhost/path", "sc://a/;b"]
)
def test_a_malformed_url(url: str) -> None:
    with pytest.raises(
        SparkError, match=re.escape(f"{url}: is not the URL of a Spark Connect server")
    ):
        connecting.place(url)


def test_one_that_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.runtime import sessions

    asked: list[str] = []
    monkeypatch.setattr(sessions, "active", lambda: None)
    monkeypatch.setattr(connecting, "connected", lambda url, app, settings: asked.append(url))
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:7")
    tamis.spark.session()
    tamis.spark.session("sc://localhost:8")
    assert asked == ["sc://localhost:7", "sc://localhost:8"]
    with pytest.raises(SparkError, match="SPARK_REMOTE is 'sc://localhost:7'"):
        tamis.spark.session("local[1]")


def _left_alone() -> str:
    spark = tamis.spark.session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connecting, "_AWAY", 1.0)
        with pytest.raises(SparkError) as refusal:
            run_job(spark, lambda: spark.range(3).collect())
        spark.stop()  # which asks the server once more
    return str(refusal.value)


def test_a_server_that_has_gone(doomed: Server, client: Client) -> None:
    """This test takes the server down, so it runs last."""
    client.asked(_session)
    doomed.process.kill()
    doomed.process.wait()
    assert client.asked(_left_alone) == "the Spark Connect server does not answer any more"
