"""What a shell completes, in a real bash that reads the script that users install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.calls import Capture, refused, run

# Sources the script, and asks the function that it registers, as bash does for a tab.
ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
complete -p tamis | grep -q _tamis_completion || exit 9
_tamis_completion tamis
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script, next to a command `tamis` of this tree."""
    folder = tmp_path_factory.mktemp("completion")
    command = folder / "tamis"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tamis.cli.main "$@"\n')
    command.chmod(0o755)
    made = subprocess.run([command, "completion", "bash"], capture_output=True, check=True)
    path = folder / "tamis.bash"
    path.write_bytes(made.stdout)
    return path


def _completed(script: Path, *words: str) -> list[str]:
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", script, "tamis", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert ran.returncode == 0, ran.stderr
    # compopt works at a tab only.
    assert "Traceback" not in ran.stderr
    return ran.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["se"], ["serve"]),
        (["s"], ["schema", "serve", "switch-matching", "subscribe", "spark", "schedulers", "soak"]),
        (["log", "st"], ["stats"]),
        (["keys", ""], ["create", "list", "revoke"]),
        (["switch-matching", "DATA", ""], ["inline", "spark"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["match", "--ev"], ["--events"]),
        (["match", "--bad", "s"], ["skip"]),
    ],
    ids=" ".join,
)
def test_bash_completes(script: Path, words: list[str], expected: list[str]) -> None:
    assert sorted(_completed(script, *words)) == sorted(expected)


@pytest.mark.parametrize(("shell", "part"), [("zsh", "#compdef tamis"), ("fish", "complete ")])
def test_other_shells_have_their_script(shell: str, part: str, capsys: Capture) -> None:
    assert run("completion", shell) == 0
    out = capsys.readouterr().out
    assert part in out
    assert f"_TAMIS_COMPLETE={shell}_complete" in out
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=out, text=True, check=True)


def test_a_shell_that_nobody_knows_is_refused(capsys: Capture) -> None:
    assert "'bash', 'zsh', 'fish'" in refused(capsys, "completion", "csh")
