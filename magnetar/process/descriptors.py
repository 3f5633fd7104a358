"""The limit of open files, of which each connection takes one.

If the system allows fewer than the settings need, the server accepts fewer connections and says so
at the start: a peer beyond the limit then gets a reason, and storage never runs out of files.

The kernel's table of them grows by doubling, and each time whoever opens a file waits until all
processors have passed through the kernel, if the process has threads (`expand_fdtable` in
`fs/file.c` of Linux): 5 to 27 ms, in the loop, at the 256th connection, the 512th, and so on. So
the table gets its size at the start, when there is one thread.
"""

import fcntl
import logging
import os
from importlib import import_module
from typing import Final

log = logging.getLogger(__name__)

OTHER_FILES: Final = 256
"""Reserved for storage, listeners and a few HTTP connections."""
OTHER_FILES_MIN: Final = 52
"""The open files of an idle server and a few more: with fewer nothing works."""
ROOM_MAX: Final = 65_536
"""The most that the table has room for at the start: half a megabyte of the kernel's memory."""

FEW_FILES: Final = 1024
"""With fewer, clients may use up all of them before the code that serves them is imported, and
Python does not repeat an import that failed halfway.
"""


def load_all_if(files: int) -> None:
    """If files are few, import now what is otherwise imported late for a quick start."""
    if 0 <= files < FEW_FILES:
        from magnetar.wire.http import app
        from magnetar.wire.kafka.front import PARTS
        from magnetar.wire.mqtt.front import WEBSOCKET

        for name in ("magnetar.wire.http.server.stack", *app.LATE, *PARTS, WEBSOCKET):
            import_module(name)


def raise_limit() -> int:
    """Raise the limit to the most that the system allows, since the usual 1024 is far too low;
    returns the new limit.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:  # macOS enforces a lower limit than it reports
        log.debug("keeping %d file descriptors: %s", soft, error)
        return soft
    return hard


def connections_within(files: int, requested: int) -> int:
    """How many of the requested connections fit into the limit of open files; -1 is no limit."""
    if files < 0 or requested <= files - OTHER_FILES:
        return requested
    room = max(files - OTHER_FILES, (files - OTHER_FILES_MIN) // 2, 1)
    if room >= requested:
        return requested
    log.warning(
        "this system allows %d open files: the server accepts only %d connections, although "
        "limits.connections is %d",
        files, room, requested,
    )  # fmt: skip
    return room


def make_room(files: int, connections: int) -> None:
    """Let the table of descriptors have its size, as long as there is one thread."""
    wanted = min(connections + OTHER_FILES, ROOM_MAX)
    if 0 <= files < wanted:
        wanted = files
    with open(os.devnull, "rb") as anything:
        os.close(fcntl.fcntl(anything, fcntl.F_DUPFD_CLOEXEC, wanted - 1))
