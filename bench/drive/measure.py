"""Carries out one case on one server and returns its figures.

Every sample has the time of a sync just before, and the machine's load average: a figure from a
busy machine must be recognisable. Invariant: a figure that could not be measured is absent, never
0.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import msgspec

from bench.drive import disk, generator, metrics, process
from bench.drive.cases import SPEAKS, Case, Protocol, arguments, spelled
from bench.drive.generator import (
    KAFKALOAD,
    KAFKARAW,
    MQTTLOAD,
    PULSARLOAD,
    GeneratorError,
    Latency,
    Line,
)
from bench.drive.histogram import Buckets
from bench.drive.server import Server

IDLE_CONNECTIONS = 1000
FILLING_CONNECTIONS = 10
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
    trouble: dict[str, int] = {}
    """What the generator counted that must not be, where it is not ok."""


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
    if not line.msg_per_s:
        return {}
    plain = {
        "msg_per_s": line.msg_per_s,
        "mb_per_s": line.mb_per_s,
        "cpu_us": line.server_us_per_msg,
        "cpu_ms_mb": line.server_us_per_msg * line.msg_per_s / line.mb_per_s / 1000,
        "generator_us": line.own_us_per_msg,
        "cores": line.server_cpu_s / line.seconds if line.seconds else 0.0,
    }
    if line.attach_s is not None and line.attach_cpu_s is not None:
        plain.update(attach_s=line.attach_s, attach_cpu_s=line.attach_cpu_s)
    return {**plain, **quantiles("", line.publish_latency), **quantiles("e2e_", line.end_to_end)}


def surroundings(server: Server) -> dict[str, float]:
    """What else to know about the moment of a sample: the disk, the machine's load."""
    os.sync()  # or the disk would still be busy with the case before
    sync = disk.probe(server.directory)
    return {
        "disk_p50_ms": sync.p50_ms,
        "disk_p99_ms": sync.p99_ms,
        "load_average": os.getloadavg()[0],
    }


def server_figures(server: Server) -> dict[str, float]:
    held = process.memory(server.pid)
    figures = {"rss_mb": held.resident_mb, "peak_mb": held.peak_mb}
    return figures | (metrics.loop_pauses_ms(server.metrics_port) if server.metrics_port else {})


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
        trouble=line.trouble,
    )


@contextlib.contextmanager
def idle_clients(case: Case, server: Server, topic: str) -> Iterator[None]:
    """Clients that are there and do nothing, if the case has any."""
    if case.beside is None:
        yield
        return
    told = spelled({"topic": topic, "run": 2, **case.beside})
    child = generator.start_idle(case.generator, server.port(case.protocol), told)
    try:
        yield
    finally:
        process.stop(child)


def measure_load(case: Case, server: Server, number: int, plan: Plan) -> Sample:
    server.renew()
    around = surroundings(server)
    process.reset_peak(server.pid)
    topic = f"bench-{case.name}-{number}"
    told = arguments(case, topic, plan.seconds, plan.warmup_seconds)
    with idle_clients(case, server, topic):
        line = generator.run(case.generator, server.port(case.protocol), told, server.pid)
    return sample(
        case, server, number, line, {**line_figures(line), **server_figures(server), **around}
    )


WARM_UP_LOADS = {
    Protocol.PULSAR: [
        (PULSARLOAD, 0.4, ["--mode", "both", "--batch", "1"]),
        # A JVM compiles by the number of calls, and a batch is one call for a thousand messages.
        (PULSARLOAD, 0.6, ["--mode", "both", "--batch", "1000", "--depth", "100"]),
    ],
    Protocol.MQTT: [(MQTTLOAD, 1.0, ["--mode", "both", "--qos", "1"])],
    Protocol.KAFKA: [
        (KAFKARAW, 0.3, ["--mode", "publish", "--connections", "100", "--depth", "1"]),
        (KAFKALOAD, 0.4, ["--mode", "both", "--bytes", "1024", "--batch-bytes", "16384"]),
        (KAFKALOAD, 0.3, ["--mode", "both", "--bytes", "1024", "--depth", "20000", "--remove"]),
    ],
}


def warm_up(server: Server, protocol: Protocol) -> None:
    """Single messages, then batches: what is compiled at run time is compiled then."""
    for number, (name, share, shape) in enumerate(WARM_UP_LOADS[protocol]):
        seconds = str(server.warmup_seconds * share)
        told = ["--topic", f"warm-{number}", "--seconds", seconds, *shape]
        generator.run(name, server.port(protocol), told)


def prepared(name: str, port: int, told: list[str]) -> None:
    """A load that is not measured, but what is measured depends on."""
    if not generator.run(name, port, told).ok:
        raise GeneratorError(f"{name} {' '.join(told)} went wrong; what did is said above")


def write_backlog(case: Case, server: Server, told: list[str]) -> None:
    """Pulsar keeps for those who have subscribed; Kafka keeps."""
    options = spelled(case.options)
    port = server.port(case.protocol)
    if case.protocol is Protocol.PULSAR:
        prepared(case.generator, port, ["--mode", "subscribe", *told, *options])
    prepared(case.generator, port, ["--mode", "publish", *told, *options])


def measure_backlog(case: Case, server: Server, number: int, plan: Plan) -> Sample:
    """Write a backlog, restart and warm up elsewhere where that is wanted, then read it all."""
    backlog = case.backlog
    assert backlog is not None
    messages = backlog.messages_full if plan.full else backlog.messages
    told = ["--topic", "backlog", "--messages", str(messages)]
    spoken = SPEAKS[backlog.reader]
    server.start()
    try:
        if not backlog.restart:
            warm_up(server, spoken)
        write_backlog(case, server, told)
        if backlog.restart:
            server.stop()
            server.start()
            warm_up(server, spoken)
        around = surroundings(server)
        prepare = disk.forget_cached if backlog.forget else disk.have_cached
        if backlog.restart:
            around["stored_mb"] = prepare(server.directory) / MEGABYTE
        process.reset_peak(server.pid)
        reading = ["--mode", "consume", *told, *spelled(backlog.reading)]
        line = generator.run(backlog.reader, server.port(spoken), reading, server.pid)
        figures = {**line_figures(line), **server_figures(server), **around}
    finally:
        server.stop()
    return sample(case, server, number, line, figures)


def measure_startup(case: Case, server: Server, number: int, _: Plan) -> Sample:
    """The time from the spawn until a message is stored: a developer's wait."""
    if case.topics > 1:
        fill_topics(case, server)
    begun = time.monotonic()
    try:
        ready = server.start()
        first = ["--mode", "publish", "--topic", "first", "--messages", "1"]
        line = generator.run(case.generator, server.port(case.protocol), first)
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


def every_topic(case: Case) -> list[str]:
    """A producer for each topic of a case, which in Kafka is a partition, on ten connections."""
    many = str(case.topics)
    if case.protocol is Protocol.KAFKA:
        topics = ["--topic", "filled", "--partitions", many]
    else:
        topics = ["--topic", "filled-%d", "--topics", many]
    each = str(case.topics // FILLING_CONNECTIONS)
    return ["--connections", str(FILLING_CONNECTIONS), "--producers", each, *topics]


def publish_in_each(case: Case, server: Server) -> None:
    """One message in each of many topics."""
    told = ["--mode", "publish", "--depth", str(case.topics // FILLING_CONNECTIONS)]
    told += ["--messages", str(case.topics), *every_topic(case)]
    prepared(case.generator, server.port(case.protocol), told)


def fill_topics(case: Case, server: Server) -> None:
    """Topics exist after that; then a clean stop."""
    server.start()
    try:
        publish_in_each(case, server)
    finally:
        server.stop()


def resident_mb(server: Server) -> float:
    process.pause(1.0)
    return process.memory(server.pid).resident_mb


def attached_mb(case: Case, server: Server, attach: list[str]) -> float:
    """Resident memory with clients attached."""
    child = generator.start_idle(case.generator, server.port(case.protocol), attach)
    try:
        return resident_mb(server)
    finally:
        process.stop(child)


def filled_mb(case: Case, server: Server) -> float:
    """Resident memory with many topics; Kafka has no attaching, so each partition is used once."""
    if case.protocol is Protocol.PULSAR:
        return attached_mb(case, server, every_topic(case))
    publish_in_each(case, server)
    return resident_mb(server)


def measure_idle(case: Case, server: Server, number: int, _: Plan) -> Sample:
    """RSS of a server that does nothing, then what idle connections and topics add."""
    try:
        server.start()
        process.pause(SETTLE_SECONDS)
        begun, cpu = time.monotonic(), process.cpu_seconds(server.pid)
        process.pause(SETTLE_SECONDS)
        cores = (process.cpu_seconds(server.pid) - cpu) / (time.monotonic() - begun)
        idle = process.memory(server.pid).resident_mb
        dial = ["--topic", "none", "--connections", str(IDLE_CONNECTIONS), "--producers", "0"]
        connected = attached_mb(case, server, dial)
        left = resident_mb(server)
        filled = filled_mb(case, server)
        figures = {
            "rss_mb": idle,
            "idle_cores": cores,
            "connection_bytes": (connected - idle) * MEGABYTE / IDLE_CONNECTIONS,
            "topics_mb": filled,
            "topic_bytes": (filled - left) * MEGABYTE / case.topics,
        }
    finally:
        server.stop()
    return Sample(case=case.name, server=server.name, round=number, ok=True, figures=figures)


Measure = Callable[[Case, Server, int, Plan], Sample]
