"""The data folder of a broker: one folder, one broker at a time.

log/            events, changes and schema records: the truth
index/          versions of the compiled subscriptions
notifications/  parts and manifests
state.db        the state database
server.key      the keys that make tickets
serving         held by the process that serves this folder
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamis.errors import BrokerError
from tamis.files.lock import locked
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder
from tamis.model.schema import Schema
from tamis.store.log import DOCUMENT, Log


class DataFolder:
    """The paths in a data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.log = self.folder / "log"
        self.index = self.folder / "index"
        self.notifications = self.folder / "notifications"
        self.state = self.folder / "state.db"
        self.key = self.folder / "server.key"

    def open_log(self, schema: Schema | dict[str, Any] | None) -> Log:
        """Open the log. If the folder has no log, create one with the given schema."""
        if (self.log / DOCUMENT).exists():
            return self.own_log()
        if schema is None:
            raise BrokerError(f"{self.folder}: there is no log yet; a new one needs a schema")
        return Log.create(self.log, schema, ids="int64")

    def own_log(self) -> Log:
        """The log of the folder; raises `BrokerError` for a copy of one in a database."""
        log = Log.open(self.log)
        if log.is_copy:
            raise BrokerError(
                f"{self.folder}: its log is a copy of one in a database; use the tools of the "
                "database, and `tamis serve --database`"
            )
        return log

    def forget_derived(self) -> None:
        """Delete what a folder holds besides `server.key`, if its log is a copy of another one."""
        for each in (self.log, self.index, self.notifications):
            shutil.rmtree(each, ignore_errors=True)
        for each in self.folder.glob(f"{self.state.name}*"):
            each.unlink()

    @contextmanager
    def served(self) -> Iterator[None]:
        """Hold the folder; raises `BrokerError` if another process does."""
        with os_errors_as(BrokerError, f"{self.folder}: cannot be used"):
            make_folder(self.folder)
            try:
                with locked(self.folder / "serving", wait=False):
                    yield
            except BlockingIOError:
                raise BrokerError(
                    f"{self.folder}: another process serves this folder; stop it, or choose "
                    "another folder"
                ) from None
