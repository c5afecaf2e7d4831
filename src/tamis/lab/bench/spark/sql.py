"""Matching in Spark SQL, by two methods that count the pairs.

*Predicates as rows* (TOPSS's predicate grouping): a row for each interval of a subscription and a
row for each value of an event. The joined rows are counted; a subscription matches if all of its
intervals join. *Equalities*: a subscription with an equality is joined on it, and the rest is a
filter; one without is compared with every event.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Floats = NDArray[np.float64]


class SqlMethod(NamedTuple):
    """A method, over subscriptions in a folder."""

    name: str
    title: str
    folder: Path
    names: list[str]  # of the attributes

    def pairs(self, spark: SparkSession, events: pa.Table) -> int:
        """The number of pairs."""
        numbers = pa.array(np.arange(events.num_rows))
        frame = spark.createDataFrame(events.append_column("event", numbers))
        if self.name == "rows":
            return _by_rows(spark, frame, self.folder, self.names)
        return _by_equality(spark, frame, self.folder, self.names)


def methods(subscriptions: pa.Table, folder: Path) -> Iterator[SqlMethod]:
    """Both methods, with the subscriptions of DEXIN written as each needs them."""
    ids, low, high, names = _intervals(subscriptions)
    folder.mkdir(parents=True)
    rows, width = folder / "rows.parquet", len(names)
    every = pa.table(
        {
            "id": np.repeat(ids, width),
            "attribute": np.tile(np.arange(width, dtype=np.int32), len(ids)),
            "low": low.reshape(-1),
            "high": high.reshape(-1),
        }
    )
    parquet.write_table(every, rows)
    yield SqlMethod("rows", "predicates as rows, joined and counted", rows, names)
    columns: dict[str, NDArray[np.generic]] = {"id": ids}
    for at, name in enumerate(names):
        columns |= {f"low_{name}": low[:, at], f"high_{name}": high[:, at]}
    point = low == high
    first = point.argmax(axis=1)
    columns["pivot"] = np.where(point.any(axis=1), first, -1)
    columns["value"] = low[np.arange(len(ids)), first]
    wide = folder / "wide.parquet"
    parquet.write_table(pa.table(columns), wide)
    yield SqlMethod("join", "broadcast join on equalities, and a filter", wide, names)


def _intervals(subscriptions: pa.Table) -> tuple[NDArray[np.int64], Floats, Floats, list[str]]:
    """The intervals of DEXIN's subscriptions, which constrain every attribute."""
    lists = subscriptions["predicates"].combine_chunks()
    assert isinstance(lists, pa.ListArray)
    structs = lists.flatten()
    assert isinstance(structs, pa.StructArray)
    attribute, comparator, value, _ = structs.flatten()
    encoded = attribute.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    at, sign = np.asarray(encoded.indices), np.asarray(comparator.to_numpy(zero_copy_only=False))
    rows = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))
    values = np.asarray(value)
    low = np.full((len(lists), len(names)), -np.inf)
    high = np.full((len(lists), len(names)), np.inf)
    for which, target in ((("=", ">="), low), (("=", "<="), high)):
        mine = np.isin(sign, which)
        target[rows[mine], at[mine]] = values[mine]
    return np.asarray(subscriptions["id"]), low, high, names


def _by_rows(spark: SparkSession, events: DataFrame, rows: Path, names: list[str]) -> int:
    from pyspark.sql import functions

    pairs = [f"named_struct('attribute', {at}, 'v', `{name}`)" for at, name in enumerate(names)]
    values = events.selectExpr("event", f"inline(array({', '.join(pairs)}))")
    predicates = spark.read.parquet(str(rows))
    joined = predicates.join(
        functions.broadcast(values),
        on=(predicates["attribute"] == values["attribute"])
        & values["v"].between(predicates["low"], predicates["high"]),
    )
    counted = joined.groupBy("event", "id").count()
    return counted.where(f"count = {len(names)}").count()


def _by_equality(spark: SparkSession, events: DataFrame, wide: Path, names: list[str]) -> int:
    from pyspark.sql import functions

    subscriptions = spark.read.parquet(str(wide))
    rest = " and ".join(f"`{name}` between `low_{name}` and `high_{name}`" for name in names)
    pairs = [f"named_struct('at', {at}, 'v', `{name}`)" for at, name in enumerate(names)]
    values = events.selectExpr("*", f"inline(array({', '.join(pairs)}))")
    with_one = subscriptions.where("pivot >= 0")
    equal = (with_one["pivot"] == values["at"]) & (with_one["value"] == values["v"])
    found = with_one.join(functions.broadcast(values), on=equal).where(rest).count()
    without = subscriptions.where("pivot < 0")
    return found + without.crossJoin(functions.broadcast(events)).where(rest).count()
