"""Reads for the pages of health and of the schema's history."""

from __future__ import annotations

import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request

from tamis.broker import metrics
from tamis.broker.access.caller import ADMIN
from tamis.broker.broker import Broker
from tamis.model.schema import Schema
from tamis.service.console.schema_differences import differences
from tamis.service.console.session_routes import PREFIX, signed_in_caller
from tamis.service.observation.health import reasons_against
from tamis.service.observation.readings import lag_seconds
from tamis.service.settings import Settings
from tamis.store.versions import Versions

router = APIRouter(prefix=PREFIX, include_in_schema=False)
_FILES = 200_000  # of a folder whose sizes are added


class FolderSize(BaseModel):
    name: str
    bytes: int
    files: int


class HealthAnswer(BaseModel):
    """How a service is: what fails, how far it is, and how much room there is."""

    failing: list[str]
    matching: str
    begin: int
    end: int
    lag_seconds: float
    live: int
    left_out: int
    streams: int
    versions: list[int]
    disk_free: int
    disk_total: int
    folders: list[FolderSize]
    limits: dict[str, Any]
    kept: dict[str, Any]


class SchemaChange(BaseModel):
    """A schema record: from which event on it holds, and what is new in it."""

    sequence: int
    version: int
    moment: datetime | None
    new: list[str]


@router.get("/health")
def health(request: Request) -> HealthAnswer:
    """How the service is, for admins."""
    signed_in_caller(request).require(ADMIN)
    server = request.app.state.server
    broker: Broker = server.broker
    folder = broker.folder.folder
    disk = shutil.disk_usage(folder)
    index = broker.folder.index
    return HealthAnswer(
        failing=list(reasons_against(broker)),
        matching="inline" if broker.matching.is_inline else "another process",
        begin=broker.log.begin,
        end=broker.log.end,
        lag_seconds=lag_seconds(broker.log, broker.matching.matched),
        live=broker.state.count(),
        left_out=len(broker.matching.left_out),
        streams=int(next(iter(metrics.OPEN_STREAMS.collect())).samples[0].value),
        versions=[each.sequence for each in Versions(index).all()] if index.is_dir() else [],
        disk_free=disk.free,
        disk_total=disk.total,
        folders=[_size(folder / name) for name in ("log", "notifications", "index", "state.db")],
        limits=_limits(server.settings),
        kept={
            name: _readable(getattr(server.settings, name))
            for name in ("keep_events", "keep_event_bytes", "keep_notifications")
        },
    )


@router.get("/schema-history")
def schema_history(request: Request) -> list[SchemaChange]:
    """The extensions of the schema that the log keeps, the latest first."""
    signed_in_caller(request)
    log = request.app.state.server.broker.log
    ranges = log.schemas(log.begin, log.end) if log.end > log.begin else []
    found, before = [], None
    for each in [*ranges, None]:
        start, schema = (log.end, log.schema_at()) if each is None else (each.start, each.schema)
        if before is None or schema.version != before.version:
            found.append(_change(log, start, before, schema))
        before = schema
    return found[::-1]


def _change(log: Any, start: int, before: Schema | None, schema: Schema) -> SchemaChange:
    moment = None
    if before is not None and start > log.begin:
        (section, *_) = log.boundaries(start - 1, start)
        moment = datetime.fromtimestamp(int(getattr(section, "appended", 0)) / 1e6, UTC)
    if before is None:
        new = ["the schema of the first event that is kept" if log.begin else "the first schema"]
    else:
        new = differences(before, schema)
    return SchemaChange(sequence=start, version=schema.version, moment=moment, new=new)


def _size(path: Path) -> FolderSize:
    """What a file or a folder takes on disk, with the files in its folders."""
    size = files = 0
    for each in [path] if path.is_file() else path.rglob("*"):
        try:
            found = each.stat()
        except OSError:  # removed meanwhile
            continue
        if stat.S_ISREG(found.st_mode):
            size, files = size + found.st_size, files + 1
        if files > _FILES:
            break
    return FolderSize(name=path.name, bytes=size, files=files)


def _limits(settings: Settings) -> dict[str, Any]:
    names = settings.limits.__dataclass_fields__
    return {name: _readable(getattr(settings.limits, name)) for name in names}


def _readable(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
