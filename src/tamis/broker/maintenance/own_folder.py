"""The data folder that a command looks after."""

from __future__ import annotations

from pathlib import Path

from tamis.broker.data_folder import DataFolder
from tamis.errors import BrokerError
from tamis.store.document import read_document
from tamis.store.log import DOCUMENT, FORMAT


def own_folder(folder: Path) -> DataFolder:
    """The data folder at a path; refused if it is none, or if its log is a copy of another one."""
    places = DataFolder(folder)
    document = read_document(places.log / DOCUMENT, FORMAT)
    if not places.state.exists():
        raise BrokerError(f"{folder}: is not a data folder; it lacks {places.state.name}")
    if document.get("copy"):
        raise BrokerError(
            f"{folder}: its log is a copy of one in a database; use the tools of the database"
        )
    return places
