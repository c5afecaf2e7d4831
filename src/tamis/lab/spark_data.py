"""DEXIN on disk, as the jobs on Spark are measured with it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tamis import workload
from tamis.engine import Engine
from tamis.model.schema import Schema
from tamis.workload import Workload

SPARK = "spark"  # what the measurement is called
SEEN = 4096  # events that an engine is laid out for
_FILES = 8
_GROUP = 1 << 17  # rows of a row group


def prepared(folder: Path, subscriptions: int, events: int, seed: int) -> Workload:
    """DEXIN in a folder: events in files, some of them once more, and an engine that knows them."""
    made = workload.make("dexin", subscriptions, seed=seed)
    for name in ("events", "some"):
        (folder / name).mkdir(parents=True)
    for file in range(_FILES):
        rows = events * (file + 1) // _FILES - events * file // _FILES
        drawn = made.events(rows, seed=file)
        parquet.write_table(drawn, folder / "events" / f"{file}.parquet", row_group_size=_GROUP)
    some = made.events(min(events, 4 * SEEN))
    parquet.write_table(some, folder / "some" / "0.parquet", row_group_size=SEEN)
    laid_out_engine(made, some.slice(0, SEEN)).save(folder / "engine")
    return made


def laid_out_engine(made: Workload, events: pa.Table) -> Engine:
    """An engine that has decided where its clauses lie, so that workers share what they open."""
    from tamis.engine.warm_start import plan_for

    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions)
    plan_for(engine, events)
    return engine
