"""The page for those who run the service says what the code does."""

from __future__ import annotations

import re

import yaml

from tamis.service.configuration.configuration import all_settings
from tamis.service.observation.described_metrics import metric_rows
from tests.acceptance.pages import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| `tamis_[^\n]*\| (?:counter|gauge|histogram) \|[^\n]*$", PAGE, re.MULTILINE
    )
    expected = list(metric_rows())
    assert rows == expected, "the table should be:\n" + "\n".join(expected)


def test_alerts_ask_for_metrics_that_exist() -> None:
    known = {name for row in metric_rows() for name in re.findall(r"`(tamis_\w+)`", row)}
    known |= {f"{name}_bucket" for name in known}
    blocks = [yaml.safe_load(text) for kind, text in _BLOCK.findall(PAGE) if kind == "yaml"]
    (alerts,) = [each for each in blocks if "groups" in each]
    rules = alerts["groups"][0]["rules"]
    assert len(rules) >= 5
    for rule in rules:
        asked = set(re.findall(r"\btamis_\w+", rule["expr"]))
        assert asked <= known, rule["alert"]


def test_settings_on_the_page_exist() -> None:
    known = {each.name for each in all_settings()}
    for kind, text in _BLOCK.findall(PAGE):
        if kind == "toml":
            assert set(re.findall(r"^([\w-]+) =", text, re.MULTILINE)) <= known


def test_the_container_file_has_the_form_of_one() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n", " ", text)
    steps = [line.split(None, 1) for line in joined.splitlines() if line and line[0] != "#"]
    words = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"}
    words |= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {step[0] for step in steps} <= words
    assert steps[0][0] == "FROM"
    last = {name: rest for name, rest in steps if name != "FROM"}
    assert last["USER"] not in ("root", "0")
    assert "/livez" in last["HEALTHCHECK"]
    for source in ("pyproject.toml", "README.md", "LICENSE", "requirements.lock", "src"):
        assert (ROOT / source).exists()
    variables = {each.variable for each in all_settings()}
    assert set(re.findall(r"TAMIS_\w+", last["ENV"])) <= variables
