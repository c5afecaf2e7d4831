"""Calling the command as a user does."""

from __future__ import annotations

import pytest

from tamis.cli import main as cli

Capture = pytest.CaptureFixture[str]


def run(*arguments: str) -> int:
    """The exit code; what is printed is for `capsys`."""
    with pytest.raises(SystemExit) as leaving:
        cli.main(list(arguments))
    code = leaving.value.code
    assert isinstance(code, int)
    return code


def refused(capsys: Capture, *arguments: str) -> str:
    """The message of a call that must be refused: exit code 2, no traceback, nothing printed."""
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.strip()
    return err
