"""Open files: each connection is one, and the system allows a process so many.

Where it allows fewer than the settings want, fewer connections are taken and that is said at the
start: a peer that is one too many then hears why, and storage never lacks a file.
"""

import logging
from importlib import import_module
from typing import Final

from magnetar.wire.http import app
from magnetar.wire.kafka import front

log = logging.getLogger(__name__)

OTHER_FILES: Final = 256
"""Of storage, of listeners and of a few HTTP connections."""
OTHER_FILES_MIN: Final = 52
"""What an idle server has open, and a little more: without that nothing works."""

FEW_FILES: Final = 1024
"""With fewer, clients may have them all before the code is loaded that serves the first of a kind.
What Python has imported by half it does not import again.
"""


def load_all_if(files: int) -> None:
    """Import what is imported later otherwise, for a quick start, where files are few."""
    if 0 <= files < FEW_FILES:
        for name in ("magnetar.wire.http.stack", *app.LATE, *front.PARTS):
            import_module(name)


def raise_limit() -> int:
    """Ask for all that the system allows: the usual 1024 is far too few. How many that is."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:  # macOS knows a lower limit than it tells
        log.debug("keeping %d file descriptors: %s", soft, error)
        return soft
    return hard


def connections_within(files: int, requested: int) -> int:
    """How many of the requested connections to take where so many files may be open; -1: any."""
    if files < 0 or requested <= files - OTHER_FILES:
        return requested
    room = max(files - OTHER_FILES, (files - OTHER_FILES_MIN) // 2, 1)
    if room >= requested:
        return requested
    log.warning(
        "this system allows %d open files: no more than %d connections, though limits.connections "
        "is %d",
        files, room, requested,
    )  # fmt: skip
    return room
