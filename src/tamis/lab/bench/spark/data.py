"""The workload DEXIN on disk, for jobs on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tamis import workload
from tamis.engine import Engine
from tamis.model.schema import Schema
from tamis.workload import Workload

SPARK = "spark"  # the name of the measurement
SEEN = 4096  # events that an engine plans for
_FILES = 8
_GROUP = 1 << 17  # rows of a row group


def write_workload(folder: Path, subscriptions: int, events: int, seed: int) -> Workload:
    """Write DEXIN to a folder: events, a sample of them, and an engine planned for them."""
    made = workload.make("dexin", subscriptions, seed=seed)
    for name in ("events", "some"):
        (folder / name).mkdir(parents=True)
    for file in range(_FILES):
        rows = events * (file + 1) // _FILES - events * file // _FILES
        drawn = made.events(rows, seed=file)
        parquet.write_table(drawn, folder / "events" / f"{file}.parquet", row_group_size=_GROUP)
    some = made.events(min(events, 4 * SEEN))
    parquet.write_table(some, folder / "some" / "0.parquet", row_group_size=SEEN)
    planned_engine(made, some.slice(0, SEEN)).save(folder / "engine")
    return made


def planned_engine(made: Workload, events: pa.Table) -> Engine:
    """An engine with a finished plan, so that workers share its pages."""
    from tamis.engine.warm_start import plan_for

    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions)
    plan_for(engine, events)
    return engine
