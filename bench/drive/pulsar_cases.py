"""The cases of the Pulsar front, beside Apache Pulsar. A table; see `drive/cases.py`."""

from functools import partial

from bench.drive.cases import Backlog, Case, Kind, Options
from bench.drive.generator import PULSARLOAD

other = partial(Case, generator=PULSARLOAD)


def load(name: str, title: str, options: Options, goal: str = "") -> Case:
    return other(name, title, options=options, goal=goal, topics=int(options.get("topics", 1)))


BATCH: Options = {"batch": 1000, "depth": 100}
BATCH_64K: Options = {"batch": 64, "bytes": 1024, "depth": 100}
ONE_EACH: Options = {"mode": "publish", "connections": 100, "depth": 1}
PUBLISH: Options = {"mode": "publish"}
BOTH: Options = {"mode": "both"}

LOADS = [
    load("publish", "100 B publish, 1000 in flight", PUBLISH, "<= 2.5 us"),
    load("both", "100 B publish + consume + ack", BOTH, "<= 5 us, >= 120 k msg/s"),
    load("both-single-ack", "same, every message acked alone", {**BOTH, "ack": "single"}),
    load("publish-1k", "1 KiB publish", {**PUBLISH, "bytes": 1024}),
    load("both-1k", "1 KiB publish + consume + ack", {**BOTH, "bytes": 1024}),
    load("batch-publish", "batches of 1000 x 100 B, publish", {**PUBLISH, **BATCH}, "<= 0.15 us"),
    load("batch-both", "same, publish + consume + ack", {**BOTH, **BATCH}, "<= 0.25 us"),
    load("batch64k-publish", "64 KiB batches of 1 KiB, publish", {**PUBLISH, **BATCH_64K}),
    load("batch64k-both", "same, publish + consume + ack", {**BOTH, **BATCH_64K}),
    load("connections-100", "100 connections, 1 in flight each", ONE_EACH, "<= 15 us"),
    load("connections-100-topics", "same, each on its own topic", {**ONE_EACH, "topics": 100}),
    load(
        "connections-1000", "1,000 connections, 1 in flight each", {**ONE_EACH, "connections": 1000}
    ),
    *[
        load(f"depth-{depth}", f"100 B publish, {depth:,} in flight", {**PUBLISH, "depth": depth})
        for depth in (1, 10, 100, 1000, 10_000)
    ],
    load(
        "rate-1000",
        "1,000 msg/s published, open loop",
        {**PUBLISH, "rate": 1000},
        "p50 <= disk + 0.4 ms, p99 <= disk p99 + 1.5 ms, <= 60 us",
    ),
    load("rate-1000-both", "same, publish + consume + ack", {**BOTH, "rate": 1000}),
]

OTHERS = [
    other(
        "cold",
        "cold backlog of 100 B, read to the end",
        kind=Kind.BACKLOG,
        goal="<= 6 us, >= 120 k msg/s",
        backlog=Backlog(1_000_000, 10_000_000, PULSARLOAD),
    ),
    other(
        "cold-batch",
        "cold backlog of batches of 1000 x 100 B",
        kind=Kind.BACKLOG,
        options=BATCH,
        backlog=Backlog(10_000_000, 100_000_000, PULSARLOAD, BATCH),
    ),
    other("startup", "spawn to first message stored, empty", kind=Kind.STARTUP, goal="<= 0.4 s"),
    other(
        "startup-1000",
        "same, with 1,000 topics",
        kind=Kind.STARTUP,
        goal="<= 1 s",
        topics=1000,
    ),
    other(
        "idle",
        "10,000 idle topics, 1,000 idle connections",
        kind=Kind.IDLE,
        goal="RSS <= 70 MB; <= 10 KB each",
        topics=10_000,
    ),
]

PULSAR_CASES = [*LOADS, *OTHERS]
