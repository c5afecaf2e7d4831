"""Damaged, foreign and newer saved indexes are refused."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis.errors import SavedIndexError
from tamis.files.array_folder import DATA, FORMAT, MANIFEST, read, write
from tests.unit.files.saved_index import ARRAYS, FACTS, blob, body_of, edit, made


def _refused(folder: Path, why: str, *, verify: bool = True) -> None:
    with pytest.raises(SavedIndexError, match=why) as refusal:
        read(folder, verify=verify)
    assert str(folder) in str(refusal.value), "it says of which folder it speaks"


@pytest.mark.parametrize("file", [MANIFEST, DATA])
def test_a_flipped_byte_is_found_wherever_it_is(folder: Path, file: str) -> None:
    path = folder / file
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 1000)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        _refused(folder, "damaged|format")
    path.write_bytes(content)
    read(folder)


def test_what_is_damaged_is_named(folder: Path) -> None:
    body = body_of(folder)
    content = (folder / DATA).read_bytes()
    for kind, word in (("arrays", "array"), ("blobs", "blob")):
        for name, said in body[kind].items():
            if said["bytes"]:
                flipped = bytearray(content)
                flipped[said["offset"] + said["bytes"] - 1] ^= 128
                (folder / DATA).write_bytes(flipped)
                _refused(folder, f"the {word} '{name}' is damaged")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("file", [MANIFEST, DATA])
def test_a_file_cut_short_or_too_long_is_found(folder: Path, file: str, verify: bool) -> None:
    path = folder / file
    content = path.read_bytes()
    for wrong in (b"", content[:1], content[: len(content) // 2], content[:-1], content + b"\0"):
        path.write_bytes(wrong)
        _refused(folder, f"{file}.* damaged", verify=verify)
    path.unlink()
    _refused(folder, f"'{DATA}' is missing|no {MANIFEST}", verify=verify)


def test_arrays_that_were_swapped_are_found(folder: Path) -> None:
    body = body_of(folder)
    content = (folder / DATA).read_bytes()
    one, other = (body["arrays"][name] for name in ("numbers", "others"))
    assert one["bytes"] == other["bytes"]
    swapped = bytearray(content)
    for here, there in ((one, other), (other, one)):
        part = content[there["offset"] : there["offset"] + there["bytes"]]
        swapped[here["offset"] : here["offset"] + here["bytes"]] = part
    (folder / DATA).write_bytes(swapped)
    _refused(folder, "the array 'numbers' is damaged: the checksum does not match")


def test_files_of_two_indexes_do_not_mix(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", {**ARRAYS, "one": np.array(8, np.uint64)}, FACTS)
    shutil.copy(tmp_path / "other" / MANIFEST, folder / MANIFEST)
    _refused(folder, "damaged")


def test_no_folder_and_no_index(tmp_path: Path) -> None:
    _refused(tmp_path / "nowhere", "there is no such folder")
    (tmp_path / "file").write_text("hello")
    _refused(tmp_path / "file", "is a file; a saved index is a folder")
    (tmp_path / "empty").mkdir()
    _refused(tmp_path / "empty", "is not a saved index: it has no manifest")
    (tmp_path / "foreign").mkdir()
    png, deep = b"\x89PNG\r\n", b"[" * 3000
    for said in (b"", png, b"\xff" * 10_000, b"[1]\n", b'{"magic": "other"}\n', deep):
        (tmp_path / "foreign" / MANIFEST).write_bytes(said)
        _refused(tmp_path / "foreign", "is not a saved index, or its manifest is damaged")
    (tmp_path / "foreign" / MANIFEST).unlink()
    (tmp_path / "foreign" / MANIFEST).mkdir()
    _refused(tmp_path / "foreign", "cannot be read: Is a directory")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (FORMAT + 1, f"was saved in format {FORMAT + 1}.* newer tamis"),
        *((wrong, "the format is") for wrong in (0, -1, "1", None, 1.5)),
    ],
)
def test_a_newer_or_invalid_format_is_refused(folder: Path, said: object, message: str) -> None:
    edit(folder, header=lambda top: top.update(format=said))
    _refused(folder, message)


def test_another_byte_order_is_refused(folder: Path) -> None:
    other = {"little": "big", "big": "little"}[sys.byteorder]
    edit(folder, lambda body: body.update(byte_order=other))
    _refused(folder, f"was written on a {other}-endian machine")


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "|O"},
        {"dtype": "<U4"},
        {"dtype": "V8"},
        {"dtype": ["<i8"]},
        {"dtype": None},
        {"dtype": "<i4"},
        {"shape": [1001]},
        {"shape": [-1000]},
        {"shape": [1000, 1 << 61, 0]},
        {"shape": 1000},
        {"shape": [1000.0]},
        {"shape": [True]},
        {"offset": 64},
        {"offset": 1 << 40},
        {"offset": -4096},
        {"offset": None},
        {"offset": True},
        {"bytes": 8001},
        {"bytes": 1 << 40},
        {"bytes": -1},
        {"bytes": "many"},
        {"crc32": 0},
        {"crc32": "0000000g"},
        {"crc32": "00000000"},
    ],
    ids=str,
)
def test_edited_sections_are_refused(folder: Path, change: dict[str, Any]) -> None:
    edit(folder, lambda body: body["arrays"]["numbers"].update(change))
    _refused(folder, "numbers")


OUTSIDE = ("../numbers", "/etc/passwd", ".hidden", "", "a/b", "A", "é", "a\0")


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_do_not_lead_out_of_the_folder(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(SavedIndexError, match="cannot be named"):
        write(tmp_path / "other", {name: np.zeros(1)}, {})
    with pytest.raises(SavedIndexError, match="cannot be named"):
        write(tmp_path / "other", {}, {}, {name: blob})
    assert not (tmp_path / "other").exists()
    for kind in ("arrays", "blobs"):
        shutil.rmtree(folder)
        edit(made(folder), _with(kind, name))
        _refused(folder, "cannot have this name")


def _with(kind: str, name: str) -> Callable[[dict[str, Any]], object]:
    return lambda body: body[kind].update({name: body["arrays"]["one"]})


@pytest.mark.parametrize("part", ["byte_order", "bytes", "arrays", "blobs", "facts"])
def test_a_manifest_without_a_part_is_refused(folder: Path, part: str) -> None:
    edit(folder, lambda body: body.pop(part))
    _refused(folder, f"lacks one of .*{part}")
