"""JSON documents come back as written; others are refused, with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.errors import SparkError, StoreError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import names_in


def test_a_document_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    for document in ({"format": 1, "name": "écu"}, {"format": 2}):
        write_json(path, document)
        assert read_json(path, "a thing", StoreError, newest=2) == document
    assert names_in(tmp_path) == {"d.json"}


@pytest.mark.parametrize(("indent", "text"), [(1, '{\n "é": 1\n}\n'), (None, '{"é": 1}\n')])
def test_the_text_of_a_document(tmp_path: Path, indent: int | None, text: str) -> None:
    write_json(tmp_path / "d.json", {"é": 1}, indent=indent)
    assert (tmp_path / "d.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", r"d\.json: is damaged, it is not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "does not hold a JSON object"),
        (b"{}", "the format is None"),
        (b'{"format": true}', "the format is True"),
        (b'{"format": 0}', "the format is 0"),
        (b'{"format": 4}', "has format 4, and this tamis reads formats up to 3; use the newer"),
    ],
)
def test_damaged_and_newer_documents(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "d.json").write_bytes(content)
    with pytest.raises(SparkError, match=says):
        read_json(tmp_path / "d.json", "a thing", SparkError, newest=3)


def test_a_missing_document_says_what_is_there(tmp_path: Path) -> None:
    def refusal(path: Path) -> Any:
        return pytest.raises(StoreError, match=f"^{path.parent} is not a thing: ")

    with refusal(tmp_path / "no" / "d.json") as said:
        read_json(tmp_path / "no" / "d.json", "a thing", StoreError)
    assert said.match("no such folder")
    with refusal(tmp_path / "d.json") as said:
        read_json(tmp_path / "d.json", "a thing", StoreError)
    assert said.match("empty")
    for name in "abcdef":
        (tmp_path / name).touch()
    with refusal(tmp_path / "d.json") as said:
        read_json(tmp_path / "d.json", "a thing", StoreError)
    assert said.match(r"it has no d\.json, only: a, b, c, d, e, …")
    with refusal(tmp_path / "a" / "d.json") as said:
        read_json(tmp_path / "a" / "d.json", "a thing", StoreError)
    assert said.match("a file, not a folder")
