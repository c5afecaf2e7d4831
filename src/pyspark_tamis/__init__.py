"""Makes `format("tamis")` known to Spark.

Spark imports every module whose name begins with `pyspark_` and registers its `DefaultSource`, so
that in an environment that has tamis nobody has to register anything.
"""

from tamis.spark.stream.log_source import TamisDataSource as DefaultSource

__all__ = ["DefaultSource"]
