"""Carries out one case on one server and returns its figures.

Every sample holds what the disk took to sync just before, and the machine's load average: a figure
from a busy machine must show that it is one. Invariant: a figure that could not be had is absent,
never 0.
"""

import os
import time
from collections.abc import Callable

import msgspec

from bench.drive import disk, generator, metrics, process
from bench.drive.cases import Case, arguments
from bench.drive.generator import Latency, Line
from bench.drive.histogram import Buckets
from bench.drive.server import Server

IDLE_CONNECTIONS = 1000
SETTLE_SECONDS = 3.0
MEGABYTE = 1024 * 1024


class Plan(msgspec.Struct, frozen=True):
    """How long and how much, for every case of a run."""

    seconds: float = 4.0
    warmup_seconds: float = 2.0
    full: bool = False


class Sample(msgspec.Struct, frozen=True):
    """One case, one server, one round."""

    case: str
    server: str
    round: int
    ok: bool
    figures: dict[str, float]
    publish_buckets: Buckets = []
    end_to_end_buckets: Buckets = []


def quantiles(prefix: str, latency: Latency | None) -> dict[str, float]:
    if latency is None:
        return {}
    names = {
        "p50_ms": latency.p50_ms,
        "p99_ms": latency.p99_ms,
        "p999_ms": latency.p999_ms,
        "max_ms": latency.max_ms,
    }
    return {prefix + name: value for name, value in names.items()}


def line_figures(line: Line) -> dict[str, float]:
    plain = {
        "msg_per_s": line.msg_per_s,
        "mb_per_s": line.mb_per_s,
        "cpu_us": line.server_us_per_msg,
        "generator_us": line.own_us_per_msg,
        "cores": line.server_cpu_s / line.seconds if line.seconds else 0.0,
    }
    return {**plain, **quantiles("", line.publish_latency), **quantiles("e2e_", line.end_to_end)}


def surroundings(server: Server) -> dict[str, float]:
    """What else to know about the moment of a sample: the disk, the machine's load."""
    sync = disk.probe(server.directory)
    return {
        "disk_p50_ms": sync.p50_ms,
        "disk_p99_ms": sync.p99_ms,
        "load_average": os.getloadavg()[0],
    }


def server_figures(server: Server) -> dict[str, float]:
    held = process.memory(server.pid)
    figures = {"rss_mb": held.resident_mb, "peak_mb": held.peak_mb}
    pause = metrics.loop_pause_ms(server.http_port)
    return figures if pause is None else {**figures, "pause_ms": pause}


def sample(
    case: Case, server: Server, number: int, line: Line, figures: dict[str, float]
) -> Sample:
    return Sample(
        case=case.name,
        server=server.name,
        round=number,
        ok=line.ok,
        figures=figures,
        publish_buckets=line.publish_latency.buckets if line.publish_latency else [],
        end_to_end_buckets=line.end_to_end.buckets if line.end_to_end else [],
    )


def measure_load(case: Case, server: Server, number: int, plan: Plan) -> Sample:
    server.renew()
    around = surroundings(server)
    process.reset_peak(server.pid)
    topic = f"bench-{case.name}-{number}"
    line = generator.run(
        server.port, arguments(case, topic, plan.seconds, plan.warmup_seconds), server.pid
    )
    return sample(
        case, server, number, line, {**line_figures(line), **server_figures(server), **around}
    )


WARM_UP_LOADS = [
    (0.4, ["--batch", "1"]),
    # A JVM compiles by the number of calls, and a batch is one call for a thousand messages.
    (0.6, ["--batch", "1000", "--depth", "100"]),
]


def warm_up(server: Server) -> None:
    """Single messages, then batches: what is compiled at run time is compiled then."""
    for number, (share, shape) in enumerate(WARM_UP_LOADS):
        seconds = str(server.warmup_seconds * share)
        topic = ["--mode", "both", "--topic", f"warm-{number}"]
        generator.run(server.port, [*topic, "--seconds", seconds, *shape])


def measure_cold(case: Case, server: Server, number: int, plan: Plan) -> Sample:
    """Write a backlog, restart, warm up elsewhere, drop the page cache, then read it all."""
    messages = str(case.messages_full if plan.full else case.messages)
    shape = [part for option, value in case.options.items() for part in (f"--{option}", str(value))]
    backlog = ["--topic", "backlog", "--messages", messages, *shape]
    server.start()
    try:
        generator.run(server.port, ["--mode", "subscribe", *backlog])
        generator.run(server.port, ["--mode", "publish", *backlog])
        server.stop()
        server.start()
        warm_up(server)
        around = surroundings(server)
        stored = disk.forget_cached(server.directory)
        process.reset_peak(server.pid)
        line = generator.run(server.port, ["--mode", "consume", *backlog], server.pid)
        figures = {
            **line_figures(line),
            **server_figures(server),
            **around,
            "stored_mb": stored / MEGABYTE,
        }
    finally:
        server.stop()
    return sample(case, server, number, line, figures)


def measure_startup(case: Case, server: Server, number: int, _: Plan) -> Sample:
    """From the spawn until a message is stored: what a developer waits for."""
    if case.topics > 1:
        fill_topics(case, server)
    begun = time.monotonic()
    try:
        ready = server.start()
        line = generator.run(
            server.port, ["--mode", "publish", "--topic", "first", "--messages", "1"]
        )
        figures = {
            "ready_s": ready,
            "first_s": time.monotonic() - begun,
            "cpu_s": process.cpu_seconds(server.pid),
        }
        figures.update(server_figures(server))
    finally:
        server.stop()
    figures.update(surroundings(server))
    return Sample(case=case.name, server=server.name, round=number, ok=line.ok, figures=figures)


def fill_topics(case: Case, server: Server) -> None:
    """One message in each of many topics, so that they exist; then a clean stop."""
    connections = 10
    server.start()
    try:
        each = ["--connections", str(connections), "--producers", str(case.topics // connections)]
        topics = [
            "--topic",
            "filled-%d",
            "--topics",
            str(case.topics),
            "--messages",
            str(case.topics),
        ]
        generator.run(server.port, ["--mode", "publish", "--depth", "1000", *each, *topics])
    finally:
        server.stop()


def grown_bytes(server: Server, attach: list[str]) -> float:
    """How much the server grew, in bytes, by what was attached."""
    before = process.memory(server.pid).resident_mb
    child = generator.start_idle(server.port, attach)
    try:
        process.pause(1.0)
        return (process.memory(server.pid).resident_mb - before) * MEGABYTE
    finally:
        process.stop(child)


def measure_idle(case: Case, server: Server, number: int, _: Plan) -> Sample:
    """RSS of a server that does nothing, then what idle connections and topics add."""
    connections = 10
    try:
        server.start()
        process.pause(SETTLE_SECONDS)
        begun, cpu = time.monotonic(), process.cpu_seconds(server.pid)
        process.pause(SETTLE_SECONDS)
        idle = process.memory(server.pid).resident_mb
        cores = (process.cpu_seconds(server.pid) - cpu) / (time.monotonic() - begun)
        dial = ["--topic", "none", "--connections", str(IDLE_CONNECTIONS), "--producers", "0"]
        by_connections = grown_bytes(server, dial)
        each = ["--connections", str(connections), "--producers", str(case.topics // connections)]
        by_topics = grown_bytes(server, ["--topic", "idle-%d", "--topics", str(case.topics), *each])
        figures = {
            "rss_mb": idle,
            "idle_cores": cores,
            "connection_bytes": by_connections / IDLE_CONNECTIONS,
            "topic_bytes": by_topics / case.topics,
        }
    finally:
        server.stop()
    return Sample(case=case.name, server=server.name, round=number, ok=True, figures=figures)


Measure = Callable[[Case, Server, int, Plan], Sample]
