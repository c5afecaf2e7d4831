"""The files of a demonstration."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tamis import Schema
from tamis.errors import StoreError
from tamis.store import Log

_DOCUMENT = "tamis-log.json"


class DemoFiles(NamedTuple):
    """A folder, and the schema of its events."""

    folder: Path
    document: dict[str, Any]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.data / "log"

    @property
    def schema(self) -> Path:
        return self.folder / "schema.json"

    @property
    def service(self) -> Path:
        return self.folder / "service.log"

    def prepare(self, *, fresh: bool) -> bool:
        """Make the folder ready; whether it has data of an earlier run."""
        if fresh:
            with suppress(FileNotFoundError):
                shutil.rmtree(self.data)
        self.folder.mkdir(parents=True, exist_ok=True)
        known = (self.log / _DOCUMENT).exists()
        if known and Schema.from_dict(Log.open(self.log).schema) != Schema.from_dict(self.document):
            raise StoreError(f"{self.data}: belongs to something else; choose another --folder")
        self.schema.write_text(json.dumps(self.document), encoding="utf-8")
        return known
