"""The connections to all bookies, and when what was asked of them is sent.

What is asked during one turn of the loop goes to each bookie in one send: at the end of a group of
the link (`core/ports/group_commit.py`), after the delivery of results, or else at the loop's next
turn.

Batch reads have connections of their own. Apache's bookies before 4.17 do not know them, and end
the connection: adds and other reads on it would fail with it. Such a bookie is remembered for a
while, in which single entries are read.

So have reads that fence: their answers have to be told from those of plain reads of the same entry,
which version 2 does not do, and which may never come (`sent_requests.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

import trio

from magnetar.bookie.client.connection.connection import BookieConnection
from magnetar.bookie.client.connection.quarantine import Quarantine
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.rpc.messages import BookieMessage
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.network import Network

AddressOf = Callable[[str], tuple[str, int]]
REFUSAL_SECONDS: Final = 60.0
"""How long no batch is read of a bookie that has ended a connection instead of answering: it may
have been killed, or be replaced by a newer version.
"""


class Purpose(Enum):
    """What a connection is for."""

    MAIN = "adds, and all requests that no other is for"
    BATCHES = "batch reads"
    FENCES = "reads that fence"


class Connections:
    """See the module's docstring. `loop` hears of results, if there is one."""

    def __init__(
        self,
        network: Network,
        address_of: AddressOf,
        settings: ConnectionSettings,
        loop: EventLoop | None,
        nursery: trio.Nursery,
    ) -> None:
        self.address_of = address_of
        self._network = network
        self._settings = settings
        self._loop = loop
        self._nursery = nursery
        self._connections: dict[tuple[str, int, Purpose], BookieConnection] = {}
        """By bookie, version and purpose."""
        self._quarantine = Quarantine(
            settings.error_threshold,
            settings.error_interval_seconds,
            settings.error_quarantine_seconds,
        )
        self._touched: dict[BookieConnection, None] = {}
        self._calls: list[Callable[[], None]] = []
        self._grouping = False
        self._delivering = 0
        self._something = trio.Event()

    def to(self, bookie_id: str, version: int = 2) -> BookieConnection:
        """The connection to a bookie; version 3 is for what version 2 does not have."""
        return self._to(bookie_id, version, Purpose.MAIN)

    def for_batches(self, bookie_id: str) -> BookieConnection:
        """The connection for batch reads from a bookie."""
        return self._to(bookie_id, 2, Purpose.BATCHES)

    def for_fences(self, bookie_id: str) -> BookieConnection:
        """The connection for reads that fence."""
        return self._to(bookie_id, 2, Purpose.FENCES)

    def refuses_batches(self, bookie_id: str) -> bool:
        """Whether a bookie seems to know no batch reads."""
        connection = self._connections.get((bookie_id, 2, Purpose.BATCHES))
        if connection is None or connection.refused_at is None:
            return False
        return trio.current_time() < connection.refused_at + REFUSAL_SECONDS

    def _to(self, bookie_id: str, version: int, purpose: Purpose) -> BookieConnection:
        key = bookie_id, version, purpose
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = BookieConnection(
                bookie_id, self._network, self._settings, self, version
            )
            self._nursery.start_soon(connection.run)
        return connection

    def failed_at(self, bookie_id: str) -> float | None:
        """When the connection to a bookie failed; None if it did not, or works again."""
        connection = self._connections.get((bookie_id, 2, Purpose.MAIN))
        return connection.failed_at if connection is not None else None

    def failed(self, bookie_id: str, count: int) -> None:
        """Requests to a bookie have failed."""
        self._quarantine.failed(bookie_id, trio.current_time(), count)

    def is_in_quarantine(self, bookie_id: str) -> bool:
        """Whether too many have."""
        return self._quarantine.holds(bookie_id, trio.current_time())

    def say(self, request: BookieMessage) -> None:
        """Send the same to all bookies that there are connections to; answers do not matter."""
        for connection in self._connections.values():
            connection.say(request)

    # -- sending ------------------------------------------------------------------------------

    def touch(self, connection: BookieConnection) -> None:
        """There is something to flush: at the end of the group, or soon."""
        self._touched[connection] = None
        if not self._grouping and not self._delivering:
            self._something.set()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make a call at the loop's next turn."""
        self._calls.append(call)
        self._something.set()

    def begin_group(self) -> None:
        """Promise to call `flush_group` before the loop turns: no task must be woken for it."""
        self._grouping = True

    def flush_group(self) -> None:
        """Send all that was asked since the last call."""
        self._grouping = False
        self._flush()

    def _flush(self) -> None:
        while self._touched:
            touched, self._touched = self._touched, {}
            for connection in touched:
                connection.flush()

    # -- results ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Results follow."""
        self._delivering += 1
        if self._loop is not None and self._delivering == 1:
            self._loop.begin()

    def settle(self) -> None:
        """All results are delivered; what they caused is sent."""
        if self._loop is not None and self._delivering == 1:
            self._loop.settle()
        self._delivering -= 1
        if not self._delivering and not self._grouping:
            self._flush()

    async def run(self) -> None:
        """Do soon what must not be done at once, until cancelled."""
        while True:
            await self._something.wait()
            self._something = trio.Event()
            calls, self._calls = self._calls, []
            if calls:
                self.begin()
                for call in calls:
                    call()
                self.settle()
            self._flush()
