"""Spark reads and writes topics: `spark.read.format("magnetar")`. Start with README.md."""
