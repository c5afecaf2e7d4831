"""`tamis match` as a process: streams, readers that leave, full disks, Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.unit.cli.lots import PAIRS, given, pairs


def _start(*arguments: str, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tamis.cli.main", *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_standard_input(world: Path) -> None:
    lines = (world / "lots.jsonl").read_bytes()
    out, err = _start(*given(world, "-")).communicate(lines, timeout=60)
    assert pairs(out.decode()) == PAIRS
    assert b"Traceback" not in err


def test_lines_are_matched_as_they_come(world: Path) -> None:
    started = _start(*given(world, "-"))
    assert started.stdin is not None
    assert started.stdout is not None
    for number in range(3):
        started.stdin.write(b'{"price": 1}\n')
        started.stdin.flush()
        assert json.loads(started.stdout.readline()) == {"event": number, "subscription": "cheap"}
    started.communicate(timeout=60)


def test_a_reader_that_leaves(world: Path) -> None:
    with (world / "lots.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"price": 1}\n' * 200_000)
    started = _start(*given(world))
    assert started.stdout is not None
    started.stdout.readline()
    started.stdout.close()
    started.stdout = None
    _, err = started.communicate(timeout=60)
    assert started.returncode == 1
    assert b"Traceback" not in err


LEAVES = """
import sys
import tamis.cli.match
from tamis.cli.main import main

def gone(_):
    sys.stdout.write("half a line")
    raise BrokenPipeError(32, "Broken pipe")

tamis.cli.match.stdout_lines = gone
main(sys.argv[1:])
"""


def test_a_reader_that_leaves_in_the_middle_of_a_line(world: Path) -> None:
    """Python writes what is buffered when it ends; if that failed, the exit code would be 120."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", LEAVES, *given(world)]
    ran = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr


def test_a_full_disk(world: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        started = _start(*given(world), stdout=full)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 2
    assert b"No space left on device" in err
    assert b"Traceback" not in err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams(world: Path, closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "tamis.cli.main", *given(world, "-")])
    ran = subprocess.run(
        f"{command} {closed}", shell=True, input=b"", capture_output=True, timeout=60, check=False
    )
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr


def test_ctrl_c_leaves_no_file(world: Path) -> None:
    out = world / "found.csv"
    started = _start(*given(world, "-"), "--out", str(out))
    assert started.stdin is not None
    started.stdin.write(b'{"price": 1}\n')
    started.stdin.flush()
    while not list(world.glob(".found.csv.*")):
        assert started.poll() is None
    os.kill(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"Traceback" not in err
    assert not out.exists()
    assert not list(world.glob(".found.csv.*"))
