"""Reads a topic in a batch and as a stream, in a session of the master that it is told; what it
counted goes to stdout. Of `connect:MASTER` the session is one of Spark Connect.
"""

import sys

from pyspark.sql import SparkSession


def session(master: str) -> SparkSession:
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    remote = master.removeprefix("connect:")
    return (builder.remote(remote) if remote != master else builder.master(master)).getOrCreate()


def main(master: str, url: str, topic: str, folder: str) -> None:
    spark = session(master)
    options = {"service.url": url, "topic": topic, "maxBytesPerSplit": "1k"}
    batch = spark.read.format("magnetar").options(**options).load()
    reader = spark.readStream.format("magnetar").options(**options)
    stream = reader.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "100").load()
    writer = stream.select("partition", "offset").writeStream.format("parquet")
    writer = writer.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/at")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    stored = spark.read.parquet(f"{folder}/out")
    print(batch.count(), batch.select("offset").distinct().count(), stored.distinct().count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
