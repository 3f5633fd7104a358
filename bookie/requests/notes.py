"""What one connection has on its way to the journal besides adds: fences, forces, explicit LACs.

Notes are small, and so are their requests: a client may send thousands in the time of one sync.
So a connection is not read while `NOTES_MAX` of its notes wait. That is what keeps others from
waiting: the journal calls those who wait for it in order, a few milliseconds at a time. Each note
counts as `NOTE_BYTES` being stored, too (`core/link/memory/inbound.py`), for the sum of all
connections, and for a disk that is stuck. None is refused: a recovery that is refused a fence takes
the bookie for failed.

Invariant: `done` is called exactly once for each `write`, and the bytes are counted until then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.connection import Connection
from magnetar.core.link.memory.pauses import PAUSE_LATER
from magnetar.core.ports.ledger_store import Done

NOTES_MAX: Final = 64
"""Of one connection that wait for the journal. It is read again at half of that."""
NOTE_BYTES: Final = 1024
"""About what a note takes until it is answered."""


class Notes:
    """See the module's docstring."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._count = 0
        """Those that wait."""

    def write(self, write: Callable[[Done], None], done: Done) -> None:
        """Call `write`, which has a note written or raises; `done` hears how it ended."""
        self._connection.will_write()
        self._connection.storing(NOTE_BYTES)
        self._count += 1
        if self._count == NOTES_MAX:
            self._connection.pause(PAUSE_LATER)
        ended = partial(self._ended, done)
        try:
            write(ended)
        except BrokerError as error:
            ended(error)

    def _ended(self, done: Done, error: BrokerError | None) -> None:
        # A note does not prove that its client writes: anybody may send any number of them.
        self._connection.stored(NOTE_BYTES, proves=False)
        self._count -= 1
        if self._count == NOTES_MAX // 2:
            self._connection.resume(PAUSE_LATER)
        done(error)
