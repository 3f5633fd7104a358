"""The cases of the Kafka front, beside Apache Kafka. A table; see `drive/cases.py`.

Batches are librdkafka's: up to 1 MB gathered for 5 ms, or the 16 KB that Java's clients send.
"""

from functools import partial

from bench.drive.cases import Backlog, Case, Kind, Options
from bench.drive.generator import KAFKALOAD, KAFKARAW, PULSARLOAD

PUBLISH: Options = {"mode": "publish"}
LARGE: Options = {"bytes": 1024, "depth": 50_000}
SMALL: Options = {"bytes": 100, "depth": 100_000}
JAVA: Options = {"bytes": 1024, "depth": 5000, "batch-bytes": 16_384}
FULL_SPEED: Options = {"remove": ""}
LOW_RATE: Options = {"bytes": 1024, "rate": 1000}
TAIL_MESSAGES = 16_000
"""16 MB: as much as stays in our memory."""

library = partial(Case, generator=KAFKALOAD)
by_hand = partial(Case, generator=KAFKARAW)
fetch = partial(library, kind=Kind.BACKLOG)

KAFKA_CASES = [
    library(
        "kafka-produce-1k",
        "produce 1 KiB, librdkafka's large batches",
        options={**PUBLISH, **LARGE, **FULL_SPEED},
        goal="<= 1.2 ms/MB, synced <= 1.5 and more MB/s than Kafka",
    ),
    library(
        "kafka-produce-100",
        "produce 100 B, librdkafka's large batches",
        options={**PUBLISH, **SMALL, **FULL_SPEED},
    ),
    library(
        "kafka-produce-16k",
        "produce 1 KiB in batches of 16 KB",
        options={**PUBLISH, **JAVA, **FULL_SPEED},
        goal="<= 3 us",
    ),
    library(
        "kafka-both-1k",
        "produce 1 KiB and fetch it",
        options={"mode": "both", **LARGE, **FULL_SPEED},
    ),
    by_hand(
        "kafka-connections-100",
        "100 connections, 1 request in flight each",
        options={**PUBLISH, "connections": 100, "depth": 1},
        goal="<= 15 us, synced <= 20 us and >= 20 k/s",
    ),
    by_hand(
        "kafka-connections-100-partitions",
        "same, each to its own partition",
        options={**PUBLISH, "connections": 100, "depth": 1, "partitions": 100},
    ),
    by_hand(
        "kafka-rate-1000",
        "1,000 msg/s of 1 KiB, open loop",
        options={**PUBLISH, **LOW_RATE},
        goal="p50 <= disk + 0.4 ms, p99 <= disk p99 + 1.5 ms, <= 60 us",
    ),
    library(
        "kafka-rate-1000-both",
        "same through librdkafka, produce and fetch",
        options={"mode": "both", "linger": 0, **LOW_RATE},
    ),
    fetch(
        "kafka-fetch-tail",
        "fetch 1 KiB from the tail cache, 16 MB over and over",
        # somebody must have read along: nothing is kept in the tail for nobody
        options={"mode": "both", **LARGE},
        backlog=Backlog(
            TAIL_MESSAGES,
            TAIL_MESSAGES,
            KAFKALOAD,
            {"bytes": 1024, "passes": 100},
            restart=False,
            forget=False,
        ),
        goal="<= 0.35 ms/MB",
    ),
    fetch(
        "kafka-fetch-cold",
        "fetch a backlog of 1 KiB from the page cache",
        options={**LARGE},
        backlog=Backlog(1_000_000, 4_000_000, KAFKALOAD, {"bytes": 1024}, forget=False),
        goal="<= 0.6 ms/MB",
    ),
    fetch(
        "kafka-fetch-cold-100",
        "same, of 100 B",
        options={**SMALL},
        backlog=Backlog(10_000_000, 40_000_000, KAFKALOAD, {"bytes": 100}, forget=False),
    ),
    fetch(
        "kafka-fetch-disk",
        "fetch a backlog of 1 KiB from the disk",
        options={**LARGE},
        backlog=Backlog(1_000_000, 4_000_000, KAFKALOAD, {"bytes": 1024}),
    ),
    by_hand(
        "kafka-crossing",
        "batches of 100 x 100 B by Kafka, consumed by Pulsar",
        kind=Kind.BACKLOG,
        options={"batch": 100, "depth": 100},
        backlog=Backlog(2_000_000, 20_000_000, PULSARLOAD, {"batch": 100}, forget=False),
        goal=">= 200 k msg/s a core: <= 5 us",
    ),
    by_hand(
        "kafka-startup",
        "spawn to first message acknowledged",
        kind=Kind.STARTUP,
    ),
    by_hand(
        "kafka-idle",
        "1,000 partitions, 1,000 idle connections",
        kind=Kind.IDLE,
        topics=1000,
        goal="RSS <= 150 MB with the partitions; <= 10 KB a connection",
    ),
]
