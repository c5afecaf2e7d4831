"""The data folder that a command looks after."""

from __future__ import annotations

from pathlib import Path

from tamis.broker.data_folder import DataFolder
from tamis.errors import BrokerError


def own_folder(folder: Path) -> DataFolder:
    """The data folder at a path. Another folder, or one whose log is a copy, is refused."""
    places = DataFolder(folder)
    places.own_log()
    if not places.state.exists():
        raise BrokerError(f"{folder}: is not a data folder; it lacks {places.state.name}")
    return places
