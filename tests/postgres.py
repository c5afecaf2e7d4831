"""A PostgreSQL server of the tests' own, from the distribution's package, gone when they end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ACCOUNT = "postgres"  # the server refuses to run as root; Debian's package brings this account


def programs() -> Path | None:
    """The folder of the newest server's programs; None where there is no server."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0,
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def server(bin: Path) -> Iterator[str]:
    """Start a server in a temporary folder; gives how to connect to it.

    It listens on a socket in that folder and on no network port, so that nobody else can reach it
    and no port can be taken.
    """
    folder = Path(tempfile.mkdtemp(prefix="tamis-pg-"))
    run_as = _as_account()
    if run_as:
        shutil.chown(folder, _ACCOUNT)
    data, log = folder / "data", folder / "log"
    control = [*run_as, str(bin / "pg_ctl"), "-D", str(data)]
    init = ["--no-sync", "-A", "trust", "-U", _ACCOUNT, "-E", "UTF8", "--no-locale"]
    try:
        _run([*run_as, str(bin / "initdb"), "-D", str(data), *init], folder)
        _run([*control, "-w", "-l", str(log), "-o", _settings(folder), "start"], folder)
        try:
            yield f"host={folder} user={_ACCOUNT} dbname=postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(folder: Path) -> str:
    return (
        f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=200 "
        "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    )


@contextmanager
def stopped(dsn: str) -> Iterator[None]:
    """Stop the server of a test as a crash would, during the block."""
    bin = programs()
    assert bin is not None
    folder = Path(dict(each.split("=") for each in dsn.split())["host"])
    control = [*_as_account(), str(bin / "pg_ctl"), "-D", str(folder / "data")]
    _run([*control, "-w", "-m", "immediate", "stop"], folder)
    yield
    log = str(folder / "log")
    _run([*control, "-w", "-l", log, "-o", _settings(folder), "start"], folder)


def _as_account() -> list[str]:
    """How to run a program as the account of the server; nothing if this is not root."""
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam(_ACCOUNT)
    return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={account.pw_gid}", "--clear-groups"]


def _run(command: list[str], folder: Path) -> None:
    # A server that inherits our pipes would keep them open: its words go to a file.
    with (folder / "words").open("w+") as words:
        done = subprocess.run(command, check=False, stdout=words, stderr=words, cwd=folder)
        words.seek(0)
        assert done.returncode == 0, f"{' '.join(command)}: {words.read()}"
