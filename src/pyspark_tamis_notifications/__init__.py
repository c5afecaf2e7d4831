"""Makes `format("tamis_notifications")` known to Spark; see `pyspark_tamis`."""

from tamis.spark.stream.notification_sink import NotificationsDataSource as DefaultSource

__all__ = ["DefaultSource"]
