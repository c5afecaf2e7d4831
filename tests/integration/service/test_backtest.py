"""Back-tests over HTTP and in the shell, of a real server."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tamis.cli.backtest import backtest
from tests.serving import serving


def test_a_condition_is_tested_on_what_was_published(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with serving(folder) as (client, _):
        client.post("/v1/events", json=[{"price": at % 10} for at in range(100)])
        asked = {"condition": "price < 3", "samples": 2}
        answer = client.post("/v1/backtest", json=asked)
        while answer.status_code == 202:
            answer = client.get(answer.headers["location"])
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert (found["events"], found["matched"], found["dead"]) == (100, 30, 0)
        assert sum(each["matched"] for each in found["over_time"]) == 30
        assert [json.loads(each["event"])["price"] < 3 for each in found["samples"]] == [True] * 2
        assert client.get(f"/v1/backtest/{found['id']}").json() == found
        assert client.delete(f"/v1/backtest/{found['id']}").status_code == 204
        assert client.get(f"/v1/backtest/{found['id']}").status_code == 404
        wrong = client.post("/v1/backtest", json={"condition": "prise < 3"})
        assert (wrong.status_code, wrong.json()["hint"] is not None) == (400, True)
        half = client.post("/v1/backtest", json={"condition": "price < 3", "first": 50})
        assert half.json()["matched"] == 15
        shown = CliRunner().invoke(backtest, [str(folder), "price < 3", "--json"])
        assert shown.exit_code == 0, shown.output
        assert json.loads(shown.output)["matched"] == 30
        assert "30 of 100 events match" in CliRunner().invoke(
            backtest, [str(folder / "log"), "price < 3"]
        ).output  # fmt: skip
