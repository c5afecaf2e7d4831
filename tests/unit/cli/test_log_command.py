"""`tamis log` on real logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tamis.cli.main import main, tamis
from tamis.model.schema import Schema
from tamis.store import Log
from tests.unit.cli.calls import run
from tests.unit.store.world import files, fresh, prices, published


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)
    log = fresh(tmp_path)
    for n in range(6):
        log.publish(prices(n))
    return log


def _run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(tamis, ["log", *map(str, arguments)])
    return done.exit_code, done.output


def _damage(log: Log) -> None:
    path = log.folder / "segments" / files(log)[1]
    whole = bytearray(path.read_bytes())
    whole[400] ^= 1
    path.write_bytes(whole)


def test_a_good_log(log: Log) -> None:
    code, text = _run("verify", log.folder)
    assert code == 0
    assert "6 rows in 6 packs" in text
    assert "nothing is wrong" in text


def test_a_damaged_log_is_verified_and_repaired(
    log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    _damage(log)
    code, text = _run("verify", log.folder)
    assert code == 1
    assert "the checksum of the events from 2 on is wrong" in text
    assert "1 row is lost" in text
    code, text = _run("verify", log.folder, "--json")
    assert json.loads(text)["lost"] == [{"first": 2, "end": 3}]
    with pytest.raises(SystemExit) as left:
        main(["log", "repair", str(log.folder)])
    assert left.value.code == 2
    assert "rows are lost: 2 to 2" in capsys.readouterr().err
    code, text = _run("repair", log.folder, "--skip-lost", "--reason", "tested")
    assert code == 0
    assert "The log is whole again" in text
    assert _run("verify", log.folder)[0] == 0
    assert [price for _, price in published(Log.open(log.folder))] == [0, 1, 3, 4, 5]


def test_the_exit_code_of_the_console_script(log: Log) -> None:
    assert run("log", "verify", str(log.folder)) == 0
    _damage(log)
    assert run("log", "verify", str(log.folder)) == 1


def test_trim(log: Log) -> None:
    assert _run("trim", log.folder, 5) == (0, "The log now begins at 4.\n")
    assert published(Log.open(log.folder)) == [(4, 4), (5, 5)]


def test_what_was_done_as_json(log: Log) -> None:
    for command, more, done in (
        ("trim", (5,), {"begin": 4}),
        ("upgrade", (), {"format": 2, "upgraded": False}),
    ):
        code, text = _run(command, log.folder, *more, "--json")
        assert (code, json.loads(text)) == (0, done)
    code, text = _run("repair", log.folder, "--json")
    assert (code, json.loads(text)["good"]) == (0, True)


def test_upgrade_of_a_log_that_has_the_newest_format(log: Log) -> None:
    assert _run("upgrade", log.folder) == (0, "The log has format 2 already.\n")


@pytest.mark.parametrize("command", ["verify", "repair", "upgrade"])
def test_what_is_not_a_log(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["log", command, str(tmp_path / "nowhere")])
    assert left.value.code == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_the_schema_is_printed_edited_and_extended(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = _run("schema", log.folder)
    assert code == 0
    assert Schema.from_dict(yaml.safe_load(text)) == log.schema_at()
    edited = tmp_path / "schema.yaml"
    edited.write_text(text.replace("attributes:", "attributes:\n  size: integer", 1))
    with pytest.raises(SystemExit) as left:  # new ones come last
        main(["log", "extend", str(log.folder), str(edited)])
    assert left.value.code == 2
    assert "reordered" in capsys.readouterr().err
    wider = log.schema_at().create_attribute("size", "integer")
    edited.write_text(wider.to_yaml())
    code, text = _run("extend", log.folder, edited)
    assert (code, text) == (0, "Version 2 of the schema applies after 6.\n")
    assert log.schema_at() == wider
    with pytest.raises(SystemExit):
        main(["log", "extend", str(log.folder), str(edited)])
    assert "has this schema already" in capsys.readouterr().err
    assert log.end == 7
