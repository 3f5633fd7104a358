"""Runs `pulsarload` and reads the line it prints.

Invariant: a run that lost, doubled or reordered a message, or met an error, is not `ok`; it is
shown, never dropped.
"""

import shutil
import subprocess
from pathlib import Path

import msgspec

from bench.drive.histogram import Buckets

HERE = Path(__file__).resolve().parents[1]
BINARY = HERE / "out" / "pulsarload"
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
    """What one run measured. `server_*` is 0 when no process was watched."""

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


def build() -> None:
    if shutil.which("make") is None:
        raise GeneratorError("`make` and a C compiler are needed to build the load generator")
    subprocess.run(["make", "-s", "-C", str(HERE)], check=True)


def parse_line(output: str) -> Line:
    """Take the last line: `idle` prints an event before it."""
    lines = output.strip().splitlines()
    if not lines:
        raise GeneratorError("pulsarload printed nothing; what it says on standard error is above")
    return msgspec.json.decode(lines[-1], type=Line)


def run(port: int, arguments: list[str], watch_pid: int | None = None) -> Line:
    command = [str(BINARY), "--port", str(port), "--wait", "60", "--histogram", *arguments]
    if watch_pid is not None:
        command += ["--watch-pid", str(watch_pid)]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=SPARE_SECONDS, check=False
    )
    if ended.returncode not in (0, 1):
        raise GeneratorError(f"pulsarload ended with {ended.returncode}: {' '.join(command)}")
    return parse_line(ended.stdout)


def start_idle(port: int, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Attach what is asked for and keep it; returns when all are attached."""
    command = [
        str(BINARY),
        "--mode",
        "idle",
        "--port",
        str(port),
        "--wait",
        "60",
        "--seconds",
        "600",
        *arguments,
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    if b"idle" not in child.stdout.readline():
        child.kill()
        raise GeneratorError(f"pulsarload could not attach: {' '.join(command)}")
    return child
