"""Settings from options, variables and a file."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from tamis.broker.setting import Declared
from tamis.errors import SettingError
from tamis.service.configuration.configuration import Setting, all_settings, configure
from tamis.service.configuration.kinds import kind_of
from tamis.service.settings import Settings
from tests.acceptance.pages import ROOT
from tests.unit.cli.calls import run


def _file(folder: Path, text: str) -> Path:
    path = folder / "tamis.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_option_comes_before_a_variable_before_the_file_before_the_default(
    tmp_path: Path,
) -> None:
    file = _file(tmp_path, "limit-events = 1\nlimit-attributes = 1\nbody-bytes = '1 MiB'\n")
    environment = {"TAMIS_LIMIT_EVENTS": "2", "TAMIS_LIMIT_ATTRIBUTES": "2"}
    found = configure({"limit-events": 3}, environment, file)
    assert found.settings.limits.events == 3
    assert found.settings.limits.attributes == 2
    assert found.settings.body_bytes == 1 << 20
    assert found.settings.longest_wait == Settings().longest_wait
    assert found.sources["limit-events"] == "option --limit-events"
    assert found.sources["limit-attributes"] == "variable TAMIS_LIMIT_ATTRIBUTES"
    assert found.sources["body-bytes"] == f"{file}: body-bytes"
    assert found.sources["longest-wait"] == "default"


def test_each_setting_is_an_option_and_the_help_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("serve", "--help") == 0
    shown = capsys.readouterr().out
    for each in all_settings():
        assert (f"--{each.name}" if each.name != "folder" else "[FOLDER]") in shown


def test_what_show_config_prints_is_a_file_that_gives_the_same(tmp_path: Path) -> None:
    options = {"limit-events": 3, "listen": ("[::1]:0", 'unix:/a"b')}
    first = configure(options, {"TAMIS_LONGEST_WAIT": "90s", "TAMIS_KEYS": "yes"}, None)
    again = configure({}, {}, _file(tmp_path, "\n".join(first.lines())))
    assert again.settings.listen == ("[::1]:0", 'unix:/a"b')
    assert again.settings.longest_wait == timedelta(seconds=90)
    assert again.settings.keys is True
    # The folder is relative to the file.
    assert again.settings.folder == tmp_path / first.settings.folder


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    file = _file(tmp_path, 'schema = "s.yaml"')
    assert configure({}, {"TAMIS_CONFIG": str(file)}, None).settings.schema == tmp_path / "s.yaml"


def test_variables_with_several_values_have_commas() -> None:
    found = configure({}, {"TAMIS_ALLOW_SINK": "10.0.0.0/8, hooks.example"}, None)
    assert found.settings.allow_sink == ("10.0.0.0/8", "hooks.example")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lisen = ['a']", "unknown key 'lisen'; did you mean 'listen'?"),
        ("listen = 'a:1'", "is not an array of texts"),
        ("limit-events = 0", "0 is less than 1"),
        ("limit-events = true", "True is not a number"),
        ("limit-events = 1.5", "1.5 is not a number"),
        ("keys = 3", "3 is not a true or false"),
        ("body-bytes = '3 pounds'", "'3 pounds' is not a size"),
        ("longest-wait = 'soon'", "'soon' is not a time span"),
        ("[limits]\nevents = 3", "unknown key 'limits'"),
        ("= 3", "is not TOML"),
    ],
)
def test_mistakes_in_the_file_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingError) as refused:
        configure({}, {}, _file(tmp_path, text))
    assert message in str(refused.value)
    assert "tamis.toml" in str(refused.value)


def test_mistakes_elsewhere_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingError, match=r"variable TAMIS_KEYS: 'maybe' is not true or false"):
        configure({}, {"TAMIS_KEYS": "maybe"}, None)
    with pytest.raises(SettingError, match="cannot be read"):
        configure({}, {}, Path("nowhere.toml"))
    assert run("serve", "x", "--limit-events", "many") == 2
    assert "'many' is not a whole number" in capsys.readouterr().err
    assert run("serve", "x", "--listen", "8080") == 2
    assert "write HOST:PORT" in capsys.readouterr().err
    assert run("serve") == 2
    assert "tamis serve FOLDER" in capsys.readouterr().err
    assert not Path("x").exists()


def test_a_misspelt_variable_gets_a_warning_and_one_of_others_does_not() -> None:
    environment = {"TAMIS_LISTN": "x", "TAMIS_SERVICE_HOST": "10.0.0.1", "TAMIS_COSTS": "usual"}
    assert configure({}, environment, None).warnings == [
        "the variable TAMIS_LISTN is not a setting; did you mean 'LISTEN'?"
    ]


def test_a_secret_is_never_shown() -> None:
    secret = Setting("p", ("p",), kind_of(int), None, Declared("A number.", 5, secret=True))
    assert secret.show(7) is None
    with pytest.raises(SettingError) as refused:
        secret.read("hush", "variable TAMIS_P")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, "1e6", 1_000_000),
        (float, "0.5", 0.5),
        (bool | None, "off", False),
        (timedelta, "7d", timedelta(days=7)),
        (timedelta | None, "1.5h", timedelta(minutes=90)),
        (Literal["inline", "spark"], "spark", "spark"),
        (Path, "a/b", Path("a/b")),
    ],
)
def test_kinds_read_what_they_show(hint: Any, text: str, value: object) -> None:
    kind = kind_of(hint)
    assert kind.read(text) == value
    assert kind.read(kind.show(value).strip('"')) == value


def test_a_choice_names_the_others() -> None:
    with pytest.raises(ValueError, match="inline, spark"):
        kind_of(Literal["inline", "spark"]).read("sparc")


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[^\n]*\|$", page, re.MULTILINE)
    expected = [each.row for each in all_settings()]
    assert rows == expected, "the table should be:\n" + "\n".join(expected)
