"""Reads a topic in a batch and as streams, in a session of the master that it is told; what it
counted goes to stdout. Of `connect:MASTER` the session is one of Spark Connect.

The batches of one stream are of several tasks, those of the other small.
"""

import sys

from pyspark.sql import SparkSession


def session(master: str) -> SparkSession:
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    remote = master.removeprefix("connect:")
    return (builder.remote(remote) if remote != master else builder.master(master)).getOrCreate()


def streamed(spark: SparkSession, folder: str, options: dict[str, str]) -> int:
    """How many rows a stream stores."""
    reader = spark.readStream.format("magnetar").options(**options)
    stream = reader.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "100").load()
    writer = stream.select("partition", "offset").writeStream.format("parquet")
    writer = writer.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/at")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    return spark.read.parquet(f"{folder}/out").distinct().count()


def main(master: str, url: str, topic: str, folder: str) -> None:
    spark = session(master)
    whole = {"service.url": url, "topic": topic}
    divided = whole | {"maxBytesPerSplit": "1k"}
    batch = spark.read.format("magnetar").options(**divided).load()
    counted = [batch.count(), batch.select("offset").distinct().count()]
    counted += [
        streamed(spark, f"{folder}/divided", divided),
        streamed(spark, f"{folder}/whole", whole),
    ]
    print(*counted)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
