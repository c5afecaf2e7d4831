"""YAML documents: as YAML reads them, but small texts cannot stand for large documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import SchemaError
from tamis.model.schema import Schema
from tamis.model.yaml_document import read_yaml


def _nine(anchor: str) -> str:
    return ",".join([f"*{anchor}"] * 9)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{_nine(before)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{k{name}: [{_nine(before)}], <<: [{_nine(before)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "stand for more than 100,000 values"),
        (MERGES, "stand for more than 100,000 values"),
        ("a: &a [*a]", "no anchor before it"),
        ("[" * 400, "nested more than 100 levels"),
        ("[" * 100_000, "nested more than 100 levels"),
        ("{a: 1, a: 2}", "the key 'a' is written twice"),
        ("{[1]: 2}", "a key is a list"),
        ("a: !!python/object:os.system x", "is not known"),
        ("a: 2026-13-45", "month must be in 1..12"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
        ("<<: 5", "the value of << is a mapping"),
        ("a: 1\n---\nb: 2", "several documents"),
    ],
    ids=lambda given: given[:20],
)
def test_documents_that_are_refused(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises((yaml.YAMLError, ValueError), match=says):
        read_yaml(text)
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with pytest.raises(SchemaError, match="not valid YAML") as refused:
        Schema.load(path)
    assert len(str(refused.value)) < 3000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: &x [1, 2]\nb: *x\n", {"a": [1, 2], "b": [1, 2]}),
        ("a: 12:30:45\nb: 1:99.5\n", {"a": "12:30:45", "b": "1:99.5"}),
        ("a: !!str 5\nb: '5'\nc: 0x10\nd: .5\ne: ~\nf: yes\n",
         {"a": "5", "b": "5", "c": 16, "d": 0.5, "e": None, "f": True}),
        ("", None),
    ],
)  # fmt: skip
def test_documents_that_are_read(text: str, value: Any) -> None:
    assert read_yaml(text) == value


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=10,
)


@given(_VALUES)
def test_what_was_written_is_read(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    if yaml.safe_load(text) == value:  # it loses some line ends
        assert read_yaml(text) == value


@given(st.text(alphabet="{}[]:,&*a<!'\"|>-\n 1?#%@`~.", max_size=40))
def test_any_text_is_read_as_yaml_reads_it_or_refused(text: str) -> None:
    try:
        found = read_yaml(text)
    except (yaml.YAMLError, ValueError):
        return
    try:
        expected = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, TypeError):
        return
    if ":" not in repr(expected).replace("': ", ""):  # sexagesimal numbers are text here
        assert repr(found) == repr(expected)


def test_large_documents_take_their_time(tmp_path: Path) -> None:
    names = "".join(f"  a{n}: integer\n" for n in range(20_000))
    path = tmp_path / "schema.yaml"
    path.write_text(f"attributes:\n{names}")
    assert len(Schema.load(path).attributes) >= 20_000
