"""The limit of open files, of which each connection takes one.

If the system allows fewer than the settings need, the server accepts fewer connections and says so
at the start: a peer beyond the limit then gets a reason, and storage never runs out of files.
"""

import logging
from importlib import import_module
from typing import Final

log = logging.getLogger(__name__)

OTHER_FILES: Final = 256
"""Reserved for storage, listeners and a few HTTP connections."""
OTHER_FILES_MIN: Final = 52
"""The open files of an idle server and a few more: with fewer nothing works."""

FEW_FILES: Final = 1024
"""With fewer, clients may use up all of them before the code that serves them is imported, and
Python does not repeat an import that failed halfway.
"""


def load_all_if(files: int) -> None:
    """If files are few, import now what is otherwise imported late for a quick start."""
    if 0 <= files < FEW_FILES:
        from magnetar.wire.http import app
        from magnetar.wire.kafka import front

        for name in ("magnetar.wire.http.server.stack", *app.LATE, *front.PARTS):
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
