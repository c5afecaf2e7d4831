"""Names from files and users stay within their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.errors import StoreError
from tamis.files.names import chosen_name, names_in, plain_name

PLAIN = ["a", "shard-0000", "part.parquet", "Ünïcode", "with space", "a..b", "x" * 255]
NOT_PLAIN = [
    "",
    ".",
    "..",
    ".hidden",
    "../up",
    "/etc/passwd",
    "a/b",
    "a/",
    "a\\b",
    "a\0",
    "a\nb",
    "\x7f",
    "\ud800",
    "\udcff",
    "x" * 256,
    "é" * 128,
    None,
    7,
    b"a",
    ["a"],
]


@pytest.mark.parametrize("name", PLAIN)
def test_plain_names_pass(tmp_path: Path, name: str) -> None:
    assert plain_name(name, "m.json: a part", StoreError) == name
    (tmp_path / name).touch()
    assert names_in(tmp_path) == {name}


@pytest.mark.parametrize("name", NOT_PLAIN, ids=repr)
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(StoreError, match=r"^m\.json: a part is named .* without '/'") as refusal:
        plain_name(name, "m.json: a part", StoreError)
    str(refusal.value).encode()  # it can be shown


def test_a_long_name_is_cut_in_the_refusal() -> None:
    with pytest.raises(StoreError) as refusal:
        plain_name("x" * 100_000, "a part", StoreError)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("name", ["q", "run-0123", "A.b_c-9", "_", "-", "x" * 100])
@pytest.mark.parametrize("wrong", ["", ".x", "..", "../up", "a b", "é", "a\n", "x" * 101])
def test_chosen_names_pass_and_others_are_refused(name: str, wrong: str) -> None:
    assert chosen_name(name, "a reader", StoreError) == name
    with pytest.raises(StoreError, match=r"a reader is named .* letters, digits"):
        chosen_name(wrong, "a reader", StoreError)
