"""Saved indexes: arrays come back as written, and changes to them stay private."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.errors import SavedIndexError
from tamis.files.array_folder import MANIFEST, read, write
from tamis.files.arrays import add_prefix, flatten, take_prefix, unflatten
from tests.running import run_script
from tests.unit.files.saved_index import ARRAYS, FACTS

# -- what is written comes back --------------------------------------------------------------------


@pytest.mark.parametrize("verify", [True, False])
def test_all_comes_back(folder: Path, verify: bool) -> None:
    arrays, facts, blobs = read(folder, verify=verify)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert type(array) is np.ndarray, "kernels are quicker at finding their way for these"
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert array.tobytes() == ARRAYS[name].tobytes()
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert array.ctypes.data % 4096 == 0 or array.size == 0
    assert facts == FACTS
    assert {name: blob.tobytes() for name, blob in blobs.items()} == {
        "words.txt": b"half of it, and the other half",
        "empty": b"",
    }


def test_an_array_can_be_mapped_by_itself(folder: Path) -> None:
    body = json.loads((folder / MANIFEST).read_bytes().splitlines()[1])
    for name, said in body["arrays"].items():
        assert said["offset"] % 4096 == 0
        if ARRAYS[name].size:
            alone = np.memmap(
                folder / "data", said["dtype"], "r", said["offset"], tuple(said["shape"])
            )
            assert np.array_equal(alone, ARRAYS[name])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_an_index_takes_one_file_of_those_a_process_may_have_open(folder: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = [read(folder) for _ in range(10)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + len(kept)


def test_arrays_of_any_layout_are_written_in_order(tmp_path: Path) -> None:
    grid = np.arange(60, dtype=np.int32).reshape(4, 15)
    given = {
        "fortran": np.asfortranarray(grid),
        "step": grid[::2, ::3],
        "back": grid[::-1],
        "swapped": grid.astype(grid.dtype.newbyteorder("S")),
    }
    write(tmp_path / "index", given, {})
    for name, array in read(tmp_path / "index").arrays.items():
        assert array.dtype == np.int32
        assert np.array_equal(array, given[name])


def test_parts_have_names_of_their_own() -> None:
    whole = {**add_prefix("a", {"x": np.zeros(1)}), **add_prefix("a.b", {"y": np.zeros(2)})}
    assert take_prefix("a", whole).keys() == {"x", "b.y"}
    assert take_prefix("a.b", whole).keys() == {"y"}
    with pytest.raises(SavedIndexError, match="no array 'z'"):
        take_prefix("a", whole)["z"]


class _Inner(NamedTuple):
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class _Outer(NamedTuple):
    inner: _Inner
    size: NDArray[np.int32]


def test_named_tuples_of_arrays_come_back(tmp_path: Path) -> None:
    given = _Outer(_Inner(np.arange(3), np.arange(4)), np.zeros(2, np.int32))
    write(tmp_path / "index", flatten(given), {})
    again = unflatten(_Outer, read(tmp_path / "index").arrays)
    assert isinstance(again, _Outer)
    assert isinstance(again.inner, _Inner)
    assert again.inner.high.tolist() == [0, 1, 2, 3]
    assert again.size.dtype == np.int32


def test_the_mode_of_the_folder_is_that_of_any_other(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert folder.stat().st_mode == (tmp_path / "other").stat().st_mode


# -- private pages ---------------------------------------------------------------------------------


def test_changes_are_private(folder: Path) -> None:
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    mine, yours = read(folder), read(folder)
    for array in mine.arrays.values():
        array[...] = 1
    mine.blobs["words.txt"][:] = 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert yours.arrays["numbers"].tolist() == list(range(1000))
    read(folder)  # all checksums still agree


def test_two_processes_share_what_neither_changes(folder: Path) -> None:
    code = (
        "import sys\n"
        "from tamis.files.array_folder import read\n"
        "numbers = read(sys.argv[1]).arrays['numbers']\n"
        "total = int(numbers.sum())\n"
        "numbers[:] = 0\n"
        "print(total)"
    )
    assert int(run_script(code, folder).stdout) == sum(range(1000))
    assert int(read(folder).arrays["numbers"].sum()) == sum(range(1000))


def test_arrays_outlive_their_folder(folder: Path) -> None:
    arrays = read(folder).arrays
    shutil.rmtree(folder)
    assert arrays["numbers"].tolist() == list(range(1000))


def test_an_array_of_another_kind_is_refused() -> None:
    """Kernels take the kind for granted, and read whatever is there as that."""

    class Record(NamedTuple):
        slots: NDArray[np.int32]

    assert unflatten(Record, {"slots": np.zeros(3, np.int32)}).slots.sum() == 0
    for wrong in (np.zeros(3, np.int8), np.zeros(3), np.zeros((3, 1), np.int32)):
        with pytest.raises(SavedIndexError, match="slots is"):
            unflatten(Record, {"slots": wrong})
