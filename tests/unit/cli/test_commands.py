"""Each command as a user calls it, and the handling of mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.match import registry
from tests.running import run_script
from tests.unit.cli.calls import Capture, refused, run

SCHEMA = """
domains:
  goods: {kind: hierarchy, tree: {goods: {table: {desk: {}}, chair: {}}}}
attributes: {price: decimal, category: goods, sold: boolean}
event_types:
  lot: {price: mandatory, category: optional, sold: optional}
"""


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "lots.yaml"
    path.write_text(SCHEMA, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("library", "extra", "arguments"),
    [
        ("httpx2", "client", ["demo"]),
        (
            "pyspark",
            "spark",
            ["spark", "match", "--events", "x", "--subscriptions", "y", "--count-only"],
        ),
    ],
)
def test_a_missing_library_says_what_to_install(
    library: str, extra: str, arguments: list[str]
) -> None:
    code = (
        "import sys\n"
        f"sys.modules['{library}'] = None\n"
        "from tamis.cli.main import main\n"
        f"main({arguments})\n"
    )
    ran = run_script(code, check=False)
    assert ran.returncode == 2
    assert ran.stderr == f"tamis: this command needs {library}: pip install 'tamis[{extra}]'\n"


def test_matchers_shows_the_registry(capsys: Capture) -> None:
    assert run("matchers") == 0
    out = capsys.readouterr().out
    for name in registry.matchers():
        assert name in out
        assert registry.entry(name).paper in out


def test_check_prints_the_condition_and_its_clauses(schema: str, capsys: Capture) -> None:
    assert run("check", schema, "price<5 AND (category <= table OR NOT sold == true)") == 0
    assert capsys.readouterr().out.splitlines() == [
        "price < 5 and (category <= table or not sold = true)",
        "2 clauses",
        "  1. price < 5 and category <= table",
        "  2. price < 5 and not sold = true",
    ]
    assert run("check", schema, "price<5") == 0
    assert capsys.readouterr().out == "price < 5\n1 clause\n"


def test_check_shows_the_place_of_a_mistake(schema: str, capsys: Capture) -> None:
    err = refused(capsys, "check", schema, "prise < 5")
    assert "^^^^^" in err
    assert "did you mean 'price'?" in err
    assert "never true" in refused(capsys, "check", schema, "price < 5 and price > 9")


def test_explain_a_match(schema: str, capsys: Capture) -> None:
    assert run("explain", schema, "category < table", '{"price": 3, "category": "desk"}') == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "matches"
    assert "category is desk" in out


def test_explain_a_miss_from_standard_input(schema: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tamis.cli.main", "explain", schema, "price < 5", "-"],
        input='{"price": 7}',
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[0] == "does not match"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "an object of attributes"),
        ('{"price": NaN}', "finite"),
        ('{"price": "5"}', "is text"),
        ('{"price": 5, "prise": 4}', "did you mean 'price'?"),
        ("{}", "mandatory"),
        ('{"price": ' + "[" * 10_000 + "]" * 10_000 + "}", ""),
        ('{"price": ' + "9" * 10_000 + "}", ""),
    ],
)
def test_explain_refuses_bad_events(schema: str, event: str, said: str, capsys: Capture) -> None:
    assert said in refused(capsys, "explain", schema, "price < 5", event)


def test_schema_summarises(schema: str, capsys: Capture) -> None:
    assert run("schema", schema) == 0
    out = capsys.readouterr().out
    assert "lot" in out
    assert "mandatory" in out
    assert "cannot be read" in refused(capsys, "schema", schema + "l")


@pytest.mark.parametrize("text", ["[1]", "attributes: {price: decimel}", "a: [", "a: 1\na: 2"])
def test_schema_refuses_bad_files(tmp_path: Path, text: str, capsys: Capture) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    assert "bad.yaml" in refused(capsys, "schema", str(path))


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("check",),
        ("demo", "--rate", "none"),
        ("demo", "--subscriptions", "0"),
        ("bench", "--matcher", "scam"),
        ("bench", "nothing"),
        ("bench", "--out", "/proc/nowhere"),
        ("bench", "peers", "--rows", "dexin,sparce"),
        ("bench", "peers", "--subscriptions", "0"),
        ("plot", "nothing.json"),
        ("plot", "/"),
        ("soak", "scam"),
        ("soak", "--reference", "tama"),
        ("soak", "--workload", "dexim"),
        ("soak", "--pairs", "nan"),
        ("soak", "--pairs", "0"),
        ("soak", "--pairs", "1e4", "--operations", "50"),
    ],
)
def test_wrong_calls_are_refused(arguments: tuple[str, ...], capsys: Capture) -> None:
    refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "lots.yaml"), 2, "lots.yaml: Permission denied"),
    ],
)
def test_breaking_off_gives_no_traceback(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("tamis.model.schema.Schema.load", fails)
    assert run("schema", "lots.yaml") == code
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert not said or err == f"tamis: {said}\n"


def test_a_reader_that_leaves_is_not_an_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tamis.cli.main", "matchers"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


def test_a_full_disk_gives_no_traceback() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "tamis.cli.main", "matchers"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 2
    assert ran.stderr == "tamis: cannot go on: No space left on device\n"


def test_conditions_in_other_languages(schema: str, capsys: Capture) -> None:
    pattern = '{"price": [{"numeric": ["<", 5]}], "sold": [true]}'
    wanted = "price < 5 and sold = true"
    language = ("--language", "eventbridge")
    assert run("check", schema, pattern, *language) == 0
    assert capsys.readouterr().out.splitlines()[0] == wanted
    assert run("explain", schema, pattern, '{"price": 7, "sold": true}', *language) == 0
    assert "no   price < 5: price is 7" in capsys.readouterr().out
    assert run("translate", "--from", "eventbridge", "--schema", schema, pattern) == 0
    assert capsys.readouterr().out == wanted + "\n"
    assert run("translate", "--from", "eventbridge", '{"a": [{"prefix": "x"}]}') == 0
    assert capsys.readouterr().out == 'a starts with "x"\n'
    said = refused(capsys, "translate", "--from", "eventbridge", '{"a": "x"}')
    assert "expected a list of values" in said
    assert "^^^" in said


def test_standard_input_that_is_no_text_is_refused(schema: str) -> None:
    for arguments in (["explain", schema, "price < 5", "-"], ["translate", "--from", "sql", "-"]):
        command = [sys.executable, "-m", "tamis.cli.main", *arguments]
        for errors in ("strict", "surrogateescape"):
            ran = subprocess.run(
                command,
                input=b"\xff",
                capture_output=True,
                check=False,
                env=os.environ | {"PYTHONIOENCODING": f"utf-8:{errors}"},
            )
            assert ran.returncode == 2
            assert ran.stderr.decode() == "tamis: standard input is not UTF-8 text\n"


@pytest.mark.parametrize("event", ["[1]", "5", "null", '"x"'])
def test_an_event_is_an_object(schema: str, event: str, capsys: Capture) -> None:
    for given in ([schema], []):
        assert "an event is an object" in refused(capsys, "explain", *given, "price < 5", event)


def test_a_service_that_does_not_answer_is_named(capsys: Capture) -> None:
    err = refused(capsys, "schema", "--server", "http://127.0.0.1:1")
    assert err.startswith("tamis: http://127.0.0.1:1: the service did not answer: ")
    assert "Errno" not in err
    assert "tamis serve" in err


def test_a_schema_alone_is_no_condition(schema: str, capsys: Capture) -> None:
    err = refused(capsys, "check", schema)
    assert f"missing argument 'CONDITION' after the schema {schema}" in err


def test_mistakes_are_in_plain_words(capsys: Capture) -> None:
    assert "'x' is not a whole number" in refused(capsys, "log", "trim", "LOG", "x")
    err = refused(capsys, "completion")
    assert "missing argument 'SHELL'. Choose from: bash, zsh, fish" in err


def test_a_missing_file_is_named_before_the_service_is_called(capsys: Capture) -> None:
    err = refused(capsys, "publish", "nosuch.csv", "--server", "http://127.0.0.1:1")
    assert err == "tamis: nosuch.csv: there is no such file or folder\n"
