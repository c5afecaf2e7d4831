"""A batch job on Spark: match a DataFrame of lots with the searches of a CSV file.

    python spark_batch.py lots.yaml searches.csv lots.jsonl found.parquet

It writes a row for each match: the number of the lot, the search, and the price. Lots that break a
rule of the schema are counted. It needs Spark: pip install 'tamis[spark]'
"""

import sys

from pyspark.sql import SparkSession

import tamis.spark
from tamis import Schema


def main(spark: SparkSession, schema_file: str, searches: str, lots: str, out: str) -> None:
    schema = Schema.load(schema_file)
    lines = spark.read.text(lots).selectExpr("monotonically_increasing_id() as lot", "value")
    events = lines.transform(tamis.spark.from_json(schema, keep=["lot"]))
    conditions = spark.read.csv(searches, header=True, escape='"')
    matching = tamis.spark.match(conditions, schema=schema, id="lot", keep=["price"])
    events.where("dead is null").transform(matching).write.parquet(out)
    dead = events.where("dead is not null").count()
    print(f"{spark.read.parquet(out).count()} matches and {dead} bad lots; see {out}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    session = tamis.spark.session()
    main(session, *sys.argv[1:])
    session.stop()
