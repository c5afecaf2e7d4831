"""The document of a log, `tamis-log.json`: format, identity, schema, type of ids, checksum."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_hexdigest

from tamis.errors import StoreError
from tamis.files.json_document import read_json
from tamis.store.changes import ID_TYPES

_IDENTITY = re.compile("[0-9a-f]{32}")


def read_document(path: Path, newest: int) -> dict[str, Any]:
    """Read and check the document of a log; `newest` is the newest format that the caller reads."""
    document = read_json(path, "a log", StoreError, newest=newest)
    if not isinstance(document.get("schema"), dict) or document.get("ids") not in (*ID_TYPES,):
        raise StoreError(f"{path}: is damaged, it lacks 'schema' or 'ids'")
    if document["format"] > 1:
        identity = document.get("log")
        if not isinstance(identity, str) or not _IDENTITY.fullmatch(identity):
            raise StoreError(f"{path}: is damaged, it lacks 'log', the identity of the log")
        if document.get("sum") != signed(document)["sum"]:
            raise StoreError(f"{path}: is damaged, its checksum is wrong")
    return document


def signed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a log with its checksum."""
    plain = {name: value for name, value in document.items() if name != "sum"}
    content = json.dumps(plain, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return {**plain, "sum": xxh3_64_hexdigest(content)}
