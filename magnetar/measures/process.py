"""What the system says of this process: the `process_*` figures that every dashboard has.

Names and meaning are those of Prometheus' client libraries. Read when asked for, from `/proc`;
where there is none (macOS), what `getrusage` knows.
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
"""This module is imported by the start."""


def families() -> list[Family]:
    """All that is known here."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        counter(
            "process_cpu_seconds_total", "User and system time", usage.ru_utime + usage.ru_stime
        ),
        gauge("process_start_time_seconds", "Seconds since 1970", STARTED),
        gauge("process_max_fds", "Files it may open", files),
        *(_of_proc() if PROC.is_dir() else _of_usage(usage)),
    ]


def _of_proc() -> list[Family]:
    pages = (PROC / "self/statm").read_text().split()
    size = resource.getpagesize()
    return [
        gauge("process_virtual_memory_bytes", "Address space", int(pages[0]) * size),
        gauge("process_resident_memory_bytes", "Memory in use", int(pages[1]) * size),
        gauge("process_open_fds", "Files that are open", len(os.listdir(PROC / "self/fd"))),
    ]


def _of_usage(usage: resource.struct_rusage) -> list[Family]:
    """The most it ever was, which is all that is known: bytes there, kibibytes elsewhere."""
    unit = 1 if sys.platform == "darwin" else 1024
    return [gauge("process_resident_memory_bytes", "The most so far", usage.ru_maxrss * unit)]
