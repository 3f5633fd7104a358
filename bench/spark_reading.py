"""Reading topics by Spark: the format `magnetar` from our server, beside Spark's own Kafka source
from Apache Kafka, in one session of `local[2]`.

    python -m bench.spark_reading [--rows 5000000] [--size 100] [--rounds 5]
    python -m bench.spark_reading --server both       beside Apache Kafka
    python -m bench.spark_reading --triggers 100      small batches of a stream, too, beside
                                                      those of sources that ask nobody
    python -m bench.spark_reading --alone --rounds 40   what a row costs the server, without Spark:
                                                      one reader, which is a worker's code
    python -m bench.spark_reading --partitions 10000  only plans, of so many partitions, by the
                                                      topic's name and by a pattern
    python -m bench.spark_reading --partitions 1000 --server gateway    from bookies and ZooKeeper

All columns are read, and none is stored (`noop`). Both servers have the same record batches, made
by librdkafka, in two partitions. CPU is that of Spark with all its workers, and of the server. The
first round, in which Java is cold, does not count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.bookies.gateway import Gateway
from bench.drive.cases import Protocol
from bench.drive.process import cpu_seconds, loop_seconds
from bench.drive.server import Magnetar
from bench.peers import jvm
from bench.peers.kafka import Kafka

SPARK_VERSION = "4.2.0"
TOPIC = "rows"
STREAMED = "triggers"
PARTITIONS = 2
WAIT_SECONDS = 60.0
DISCOVERY = Path(__file__).resolve().parents[1] / "spark_connector/discovery"


class LendingMagnetar(Magnetar):
    """Our server, with a port from which ledgers are read."""

    def words(self) -> list[str]:
        return [*super().words(), "--bookie-port", "0"]


def source(server: Magnetar | Kafka, topic: str = TOPIC) -> tuple[str, dict[str, str]]:
    """The format for a server's topics, and where they are."""
    if isinstance(server, Kafka):
        address = f"127.0.0.1:{server.port(Protocol.KAFKA)}"
        return "kafka", {"kafka.bootstrap.servers": address, "subscribe": topic}
    url = f"http://127.0.0.1:{server.port_of('http')}"
    return "magnetar", {"service.url": url, "topic": topic}


def fill(
    server: Magnetar | Kafka,
    rows: int,
    size: int,
    topic: str = TOPIC,
    partitions: int = PARTITIONS,
    **options: int,
) -> None:
    """Make a topic with so many rows."""
    from confluent_kafka.admin import AdminClient, NewTopic

    where = {"bootstrap.servers": f"127.0.0.1:{server.port(Protocol.KAFKA)}"}
    admin = AdminClient(where)
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result(WAIT_SECONDS)
    append(server, rows, size, topic, partitions, **options)


def append(
    server: Magnetar | Kafka, rows: int, size: int, topic: str, partitions: int, **options: int
) -> None:
    """Write so many rows to the partitions of a topic in turn."""
    from confluent_kafka import Producer

    where = {"bootstrap.servers": f"127.0.0.1:{server.port(Protocol.KAFKA)}"}
    options = {"linger.ms": 20, "queue.buffering.max.messages": 100_000, **options}
    producer = Producer({**where, **options})
    values = [os.urandom(size) for _ in range(100)]
    for number in range(rows):
        while True:
            try:
                producer.produce(topic, values[number % 100], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(WAIT_SECONDS) == 0, "not all was stored"


def session(jars: Path | None) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(DISCOVERY), str(DISCOVERY.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    # else each batch waits 40 ms for a delayed acknowledgement between Java and Python
    builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
    if jars is not None:
        builder = builder.config("spark.jars", ",".join(map(str, sorted(jars.glob("*.jar")))))
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def children(pid: int) -> Iterator[int]:
    """A process and all below it; a thread or a process may end meanwhile."""
    yield pid
    below: list[str] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                below += (task / "children").read_text().split()
    for child in below:
        yield from children(int(child))


def spark_cpu_seconds() -> float:
    """Of all processes of Spark, which are below this one, and of this one."""
    return sum(map(cpu_seconds, children(os.getpid())))


def read(spark: Any, server: Magnetar | Kafka, rows: int) -> tuple[float, float, float]:
    """Read everything once: seconds, and the CPU seconds of Spark and of the server."""
    name, options = source(server)
    reader = spark.read.format(name).options(**options).option("startingOffsets", "earliest")
    frame = reader.load()
    ours, theirs, begun = spark_cpu_seconds(), cpu_seconds(server.pid), time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    ours, theirs = spark_cpu_seconds() - ours, cpu_seconds(server.pid) - theirs
    return seconds, ours, theirs


def python_source() -> type:
    """A source in Python that asks nobody: each batch of it is a task with one row."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        number = 0

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"number": 0}

        def latestOffset(self) -> dict[str, int]:  # noqa: N802
            self.number += 1
            return {"number": self.number}

        def partitions(self, start: object, end: object) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (1,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "python"

        def schema(self) -> str:
            return "number INT"

        def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802
            return Reader()

    return Source


def streams(spark: Any, servers: list[Magnetar | Kafka], count: int) -> dict[str, Any]:
    """Streams whose batches have a row of each partition: of each server, and of sources that ask
    nobody: Spark's own for tests, which is in Java, and one in Python.
    """
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PARTITIONS)
    spark.dataSource.register(python_source())
    found = {
        "java": rate.option("numPartitions", PARTITIONS).load(),
        "python": spark.readStream.format("python").load(),
    }
    for server in servers:
        fill(server, PARTITIONS * (count + 1), 100, STREAMED, **{"batch.num.messages": 1})
        name, options = source(server, STREAMED)
        reader = spark.readStream.format(name).options(**options)
        reader = reader.option("startingOffsets", "earliest")
        found[server.name] = reader.option("maxOffsetsPerTrigger", PARTITIONS).load()
    return found


def trigger(stream: Any, count: int, folder: Path) -> float:
    """Milliseconds of a batch, at the median of so many."""
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(folder))
    query = writer.start()
    while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < count):
        query.awaitTermination(1)
    took = [one.durationMs["triggerExecution"] for one in query.recentProgress]
    query.stop()
    return statistics.median(took[len(took) // 4 :])


def triggers(
    spark: Any, servers: list[Magnetar | Kafka], arguments: argparse.Namespace, folder: Path
) -> None:
    """Small batches of streams in turn, with Spark's usual checkpoints and with quick ones."""
    from magnetar.spark_connector.session import ON_A_LOCAL_DISK

    found = streams(spark, servers, arguments.triggers)
    for kind, settings in (("usual", {}), ("quick", ON_A_LOCAL_DISK)):
        for setting, value in settings.items():
            spark.conf.set(setting, value)
        took: dict[str, list[float]] = {name: [] for name in found}
        for turn in range(arguments.rounds):
            for name, stream in found.items():
                here = folder / f"{kind}-{name}-{turn}".replace(" ", "-")
                took[name].append(trigger(stream, arguments.triggers, here))
        for name, each in took.items():
            ratio = statistics.median(
                one / other for one, other in zip(each, took["java"], strict=True)
            )
            print(
                f"{name:12} a batch of a stream, {kind} checkpoints: "
                f"{statistics.median(each):6.0f} ms, {ratio:.2f} of java's",
                flush=True,
            )


def plan(server: Magnetar, partitions: int, rounds: int) -> None:
    """Plan batches of a topic with messages in each of so many partitions, without Spark: the first
    one, and in each round one without a change, by the topic's name and by a pattern, and one after
    a change of all partitions.
    """
    from magnetar.spark_connector import options
    from magnetar.spark_connector.planning import planner

    fill(server, partitions, 1, partitions=partitions)
    _, given = source(server)
    url = f"{given['service.url']}/admin/v2/clusters"
    urllib.request.urlopen(url).read()  # the first request of all loads what serves HTTP
    took: dict[str, list[tuple[float, float]]] = {}

    by_pattern = {"service.url": given["service.url"], "topicsPattern": f"{TOPIC}.*"}

    def planned(kind: str, given: dict[str, str] = given) -> None:
        begun, loop = time.perf_counter(), loop_seconds(server.pid)
        tasks = planner.batch(options.parse(given), 2)
        used = (loop_seconds(server.pid) - loop) * 1000, time.perf_counter() - begun
        took.setdefault(kind, []).append(used)
        assert sum(len(task.ranges) for task in tasks) == partitions

    planned("the first plan")
    for _ in range(rounds):
        planned("nothing changed")
        planned("nothing changed, by a pattern", by_pattern)
        append(server, partitions, 1, TOPIC, partitions)
        planned("all changed")
    for kind, each in took.items():
        loop_ms, seconds = map(statistics.median, zip(*each, strict=True))
        most = max(ms for ms, _ in each)
        print(f"{kind}: loop {loop_ms:.1f} ms, {most:.1f} at the most; {seconds:.2f} s")


def alone(server: Magnetar, rows: int, rounds: int) -> None:
    """Read everything as workers do, in this process; the first round does not count. The server's
    CPU of a round is that of the query's plan, too.
    """
    from magnetar.spark_connector import options
    from magnetar.spark_connector.planning import planner
    from magnetar.spark_connector.reading.range_reader import batches

    _, given = source(server)
    used = [cpu_seconds(server.pid)]
    for _ in range(rounds + 1):
        tasks = planner.batch(options.parse(given), 2)
        assert sum(batch.num_rows for task in tasks for batch in batches(task)) == rows
        used.append(cpu_seconds(server.pid))
    each = [(after - before) / rows * 1e6 for before, after in pairwise(used)][1:]
    low, middle, high = statistics.quantiles(each, n=4)
    print(f"server {middle:.3f} us a row, quartiles {low:.3f} and {high:.3f}")


def begin(server: Magnetar | Kafka, running: ExitStack) -> None:
    """Start a server, which ends with the stack."""
    server.directory.mkdir(exist_ok=True)
    server.prepare()
    running.callback(server.close)
    server.start()
    running.callback(server.stop)


def main(arguments: argparse.Namespace) -> None:
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=arguments.directory)))
        if arguments.server == "gateway":
            ours: Magnetar = Gateway(folder / "gateway")
        else:
            # to plan syncs nothing, and to make thousands of ledgers before takes a sync for each
            ours = LendingMagnetar(folder / "magnetar", synced=not arguments.partitions)
        if arguments.partitions:
            begin(ours, running)
            plan(ours, arguments.partitions, arguments.rounds)
            return
        servers: list[Magnetar | Kafka] = [ours]
        jars = None
        if arguments.server == "both":
            (folder / "kafka").mkdir()
            servers.append(Kafka(folder / "kafka", synced=False))
            jars = jvm.fetch("spark-kafka", SPARK_VERSION, "spark-sql-kafka-0-10_2.13")
        for server in servers:
            begin(server, running)
            fill(server, arguments.rows, arguments.size)
        if arguments.alone:
            alone(ours, arguments.rows, arguments.rounds)
            return
        spark = session(jars)
        running.callback(spark.stop)
        compare(spark, servers, arguments, folder)


def told(name: str, size: int, figure: tuple[float, float, float]) -> str:
    rate, ours, theirs = figure
    return (
        f"{name:20} {rate / 1e6:6.2f} M rows/s {rate * size / 1e6:6.0f} MB/s"
        f"   CPU a row: Spark {ours * 1e6:5.2f} us, server {theirs * 1e6:6.3f} us"
    )


def compare(
    spark: Any, servers: list[Magnetar | Kafka], arguments: argparse.Namespace, folder: Path
) -> None:
    figures: dict[str, list[tuple[float, float, float]]] = {one.name: [] for one in servers}
    rows, size = arguments.rows, arguments.size
    for turn in range(arguments.rounds + 1):
        for server in servers:
            seconds, ours, theirs = read(spark, server, rows)
            figure = (rows / seconds, ours / rows, theirs / rows)
            print(told(server.name, size, figure) + ("" if turn else "   (cold)"), flush=True)
            if turn:
                figures[server.name].append(figure)
    for name, found in figures.items():
        rate, ours, theirs = (statistics.median(each) for each in zip(*found, strict=True))
        print("median", told(name, size, (rate, ours, theirs)))
    if arguments.triggers:
        triggers(spark, servers, arguments, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["magnetar", "both", "gateway"], default="magnetar")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--triggers", type=int, default=0)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--directory", type=Path, default=None)
    main(parser.parse_args())
