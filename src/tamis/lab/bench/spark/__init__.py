"""The measurements that need Spark."""
