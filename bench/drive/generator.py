"""Runs a load generator and reads the line it prints.

Invariant: a run that lost, doubled or reordered a message, or met an error, is not `ok`; it is
shown, never dropped.
"""

import fcntl
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.drive.histogram import Buckets

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "out"
PULSARLOAD = "pulsarload"
KAFKALOAD = "kafkaload"
"""Kafka through librdkafka."""
KAFKARAW = "kafkaraw"
"""Kafka by hand: many connections, idle ones, latency without a library's threads."""
MQTTLOAD = "mqttload"
SPARE_SECONDS = 600.0


class GeneratorError(Exception):
    """The generator could not be built, or ended without its line."""


class Latency(msgspec.Struct, frozen=True):
    count: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    buckets: Buckets = []


class Line(msgspec.Struct, frozen=True):
    """The figures of one run. `server_*` is 0 if no process was watched."""

    ok: bool
    published: int
    consumed: int
    seconds: float
    msg_per_s: float
    mb_per_s: float
    missing: int
    duplicates: int
    reordered: int
    errors: int
    own_us_per_msg: float
    server_cpu_s: float
    server_us_per_msg: float
    publish_latency: Latency | None = None
    end_to_end: Latency | None = None
    attach_s: float | None = None
    """How long it took until all clients were attached."""
    attach_cpu_s: float | None = None
    refused: int = 0
    corrupt: int = 0
    interrupted: bool = False
    stalled: bool = False
    cut_short: bool = False

    @property
    def trouble(self) -> dict[str, int]:
        """Errors and their counts."""
        told = {name: int(getattr(self, name)) for name in TROUBLES}
        return {name: count for name, count in told.items() if count}


TROUBLES = (
    "missing",
    "duplicates",
    "reordered",
    "refused",
    "corrupt",
    "errors",
    "interrupted",
    "stalled",
    "cut_short",
)


def build(names: Iterable[str]) -> None:
    """Build what is not up to date; an error names what is missing. Tests run in several
    processes: one makes at a time.
    """
    if shutil.which("make") is None:
        raise GeneratorError("`make` and a C compiler are needed to build the load generators")
    targets = [f"out/{name}" for name in dict.fromkeys(names)]
    OUT.mkdir(exist_ok=True)
    with (OUT / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-s", "-C", str(HERE), *targets], check=False)
    if made.returncode:
        raise GeneratorError("a load generator could not be built; why is said above")


def parse_line(output: str) -> Line:
    """Take the last line: `idle` prints an event before it."""
    lines = output.strip().splitlines()
    if not lines:
        raise GeneratorError("the generator printed nothing; what it says elsewhere is above")
    return msgspec.json.decode(lines[-1], type=Line)


def command(name: str, port: int, arguments: Iterable[str]) -> list[str]:
    return [str(OUT / name), "--port", str(port), "--wait", "60", *arguments]


def run(name: str, port: int, arguments: list[str], watch_pid: int | None = None) -> Line:
    told = command(name, port, ["--histogram", *arguments])
    if watch_pid is not None:
        told += ["--watch-pid", str(watch_pid)]
    ended = subprocess.run(
        told, stdout=subprocess.PIPE, text=True, timeout=SPARE_SECONDS, check=False
    )
    if ended.returncode not in (0, 1):
        raise GeneratorError(f"it ended with {ended.returncode}: {' '.join(told)}")
    return parse_line(ended.stdout)


def start_idle(name: str, port: int, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Attach all clients and keep them attached; returns when all are."""
    told = command(name, port, ["--mode", "idle", "--seconds", "600", *arguments])
    child = subprocess.Popen(told, stdout=subprocess.PIPE)
    assert child.stdout is not None
    if b"idle" not in child.stdout.readline():
        child.kill()
        raise GeneratorError(f"it could not attach: {' '.join(told)}")
    return child
