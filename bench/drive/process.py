"""One server process as the kernel sees it: CPU, memory, whether it lives.

Reads /proc, so the benchmarks run on Linux only; the server itself does not depend on this.
Invariant: a figure of a process that has gone raises; it is never a silent zero.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import msgspec

STOP_SECONDS = 20.0


class Memory(msgspec.Struct, frozen=True):
    """Resident memory now, and the most there was since the mark was last reset."""

    resident_mb: float
    peak_mb: float


def parse_memory(status: str) -> Memory:
    """Read VmRSS and VmHWM, which /proc/PID/status gives in kB."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    kilobytes = [int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM")]
    return Memory(resident_mb=kilobytes[0] / 1024, peak_mb=kilobytes[1] / 1024)


def parse_cpu_seconds(stat: str, ticks_per_second: int) -> float:
    """User and system time of all threads; the name in parentheses may hold anything."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks_per_second


def memory(pid: int) -> Memory:
    return parse_memory(Path(f"/proc/{pid}/status").read_text())


def cpu_seconds(pid: int) -> float:
    return parse_cpu_seconds(Path(f"/proc/{pid}/stat").read_text(), os.sysconf("SC_CLK_TCK"))


def parse_thread_seconds(schedstat: str) -> float:
    """Time on a processor, which /proc/PID/task/TID/schedstat gives first, in ns."""
    return int(schedstat.split()[0]) / 1e9


def loop_seconds(pid: int) -> float:
    """CPU of the first thread, which runs the server's loop: to the microsecond, while that of all
    threads is counted in hundredths of a second.
    """
    return parse_thread_seconds(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text())


def reset_peak(pid: int) -> None:
    """Let VmHWM start again from the present size, so that one case does not inherit another's."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask, wait, then insist. The process belongs to us: we started it."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def pause(seconds: float) -> None:
    """The one place where the driver waits for time to pass; it has no loop to hold up."""
    time.sleep(seconds)  # noqa: TID251 - a script of measurements, not the server
