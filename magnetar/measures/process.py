"""The system's figures for this process: the `process_*` metrics that every dashboard has.

Names and meaning are those of Prometheus' client libraries. They are read on demand from `/proc`;
without `/proc` (macOS), from `getrusage`.
"""

import os
import resource
import sys
import time
from pathlib import Path
from typing import Final

from magnetar.wire.http.metrics.exposition import Family, counter, gauge

PROC: Final = Path("/proc")
STARTED: Final = time.time()
"""When the process started: the start imports this module."""


def families() -> list[Family]:
    """All figures that this system provides."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        counter(
            "process_cpu_seconds_total", "User and system time", usage.ru_utime + usage.ru_stime
        ),
        gauge("process_start_time_seconds", "Seconds since 1970", STARTED),
        gauge("process_max_fds", "Limit of open files", files),
        *(_of_proc() if PROC.is_dir() else _of_usage(usage)),
    ]


def _of_proc() -> list[Family]:
    pages = (PROC / "self/statm").read_text().split()
    size = resource.getpagesize()
    return [
        gauge("process_virtual_memory_bytes", "Address space", int(pages[0]) * size),
        gauge("process_resident_memory_bytes", "Memory in use", int(pages[1]) * size),
        gauge("process_open_fds", "Open files", len(os.listdir(PROC / "self/fd"))),
    ]


def _of_usage(usage: resource.struct_rusage) -> list[Family]:
    """The peak memory, which is all that `getrusage` knows: bytes on macOS, else kibibytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return [gauge("process_resident_memory_bytes", "Peak so far", usage.ru_maxrss * unit)]
