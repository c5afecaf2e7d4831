"""An experiment in shards: tasks generate, match and count; the driver adds up."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from pyspark.sql import SparkSession

from tamis.lab.experiments.experiment import LabScale
from tamis.lab.papers.dexin.cluster import ShardTask
from tamis.lab.papers.dexin.scenario import DexinSizes
from tamis.lab.papers.dexin.subscriptions import SubscriptionsExperiment

SEED = 3


def test_shards_on_spark_are_those_of_one_process(spark: SparkSession) -> None:
    mine = SubscriptionsExperiment({LabScale.CLUSTER: DexinSizes(201, 5, 1.0)})
    step = mine.steps(LabScale.CLUSTER)[0]
    step = replace(
        step, curves=tuple(each for each in step.curves if each.name in ("dexin", "rein"))
    )
    found = list(mine.measure(step, SEED))
    assert [each.curve for each in found] == [each.name for each in step.curves]
    shards = step.parameters["shards"]
    assert shards == 2
    rows = [row for shard in range(shards) for row in ShardTask(step, SEED).run(shard)]
    for number, each in enumerate(found):
        counts: Counter[str] = Counter()
        for row in rows:
            if row["curve"] == number:
                counts.update(json.loads(row["counts"]))
        assert each.counts == counts
        assert each.counts["subscriptions"] > 0
        assert each.parameters["n"] == 502
        pairs = zip(each.measured["match_ms"], each.measured["slowest_ms"], strict=True)
        assert all(work > slowest > 0 for work, slowest in pairs)
