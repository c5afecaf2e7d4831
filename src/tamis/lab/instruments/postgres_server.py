"""A PostgreSQL server for measurements and tests, from the distribution's package.

It listens on a socket in a temporary folder and on no network port, so that nobody else can reach
it and no port can be taken.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import TamisError

_ACCOUNT = "postgres"  # the server refuses to run as root; Debian's package brings this account


def server_programs() -> Path | None:
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
def running_server(bin: Path) -> Iterator[str]:
    """Start a server in a temporary folder; gives how to connect to it."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-pg-"))
    account = as_account()
    if account:
        shutil.chown(folder, _ACCOUNT)
    init = ["--no-sync", "-A", "trust", "-U", _ACCOUNT, "-E", "UTF8", "--no-locale"]
    try:
        _run([*account, str(bin / "initdb"), "-D", str(folder / "data"), *init], folder)
        start(bin, folder)
        try:
            yield f"host={folder} user={_ACCOUNT} dbname=postgres"
        finally:
            stop(bin, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start(bin: Path, folder: Path) -> None:
    """Start the server of a folder that has a database."""
    settings = (
        f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=200 "
        "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    )
    control = [*_control(bin, folder), "-w", "-l", str(folder / "log"), "-o", settings]
    _run([*control, "start"], folder)


def stop(bin: Path, folder: Path) -> None:
    """Stop the server of a folder as a crash would."""
    _run([*_control(bin, folder), "-w", "-m", "immediate", "stop"], folder)


def as_account() -> list[str]:
    """How to run a program as the account of the server; nothing if this is not root."""
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam(_ACCOUNT)
    return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={account.pw_gid}", "--clear-groups"]


def _control(bin: Path, folder: Path) -> list[str]:
    return [*as_account(), str(bin / "pg_ctl"), "-D", str(folder / "data")]


def _run(command: list[str], folder: Path) -> None:
    # A server that inherits our pipes would keep them open: its words go to a file.
    with (folder / "words").open("w+") as words:
        done = subprocess.run(command, check=False, stdout=words, stderr=words, cwd=folder)
        words.seek(0)
        if done.returncode:
            raise TamisError(f"PostgreSQL failed: {' '.join(command)}: {words.read().strip()}")
