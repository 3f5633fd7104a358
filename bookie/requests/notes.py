"""What one connection has on its way to the journal besides adds: fences, forces, explicit LACs.

Notes are small, and so are their requests: a client may send thousands in the time of one sync.
Each is counted with the link as an add of `NOTE_BYTES` is (`core/link/memory/inbound.py`). So a
connection that sends notes is not read while too many wait, nor while storage is congested. None is
refused for that: a recovery that is refused a fence takes the bookie for failed.

Invariant: `done` is called exactly once for each `write`, and the bytes are counted until then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.connection import Connection
from magnetar.core.ports.ledger_store import Done

NOTE_BYTES: Final = 4096
"""More than a note takes: it is the time of the loop that is short. With the link's limits 4,096 of
one connection may wait, and 8,192 of all, which takes a few tenths of a second to answer.
"""


class Notes:
    """See the module's docstring."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, write: Callable[[Done], None], done: Done) -> None:
        """Call `write`, which has a note written or raises; `done` hears how it ended."""
        self._connection.will_write()
        self._connection.storing(NOTE_BYTES)
        ended = partial(self._ended, done)
        try:
            write(ended)
        except BrokerError as error:
            ended(error)

    def _ended(self, done: Done, error: BrokerError | None) -> None:
        # A note does not prove that its client writes: anybody may send any number of them.
        self._connection.stored(NOTE_BYTES, proves=False)
        done(error)
