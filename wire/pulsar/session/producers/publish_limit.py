"""Limits for the publishes of one connection: how many may wait for storage, and at what rate.

Beyond either limit the connection is not read, so the client's buffers fill up: Pulsar's
protocol has no other back-pressure for producers (`maxPendingPublishRequestsPerConnection` in
`ServiceConfiguration.java` of 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable

from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.kernel.throttle import Throttle
from magnetar.core.link.connection import Connection
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES


class PublishLimit:
    """See the module's docstring."""

    __slots__ = ("_connection", "_max", "_throttle", "pending_messages")

    def __init__(
        self, connection: Connection, throttle: ConnectionThrottle, messages_max: int
    ) -> None:
        self._connection = connection
        self._throttle = throttle
        self._max = messages_max
        self.pending_messages = 0

    def begin(self, messages: int, size: int) -> None:
        """Count messages on their way to storage; at the limit, stop reading."""
        self.pending_messages += messages
        self._connection.storing(size)
        if self.pending_messages >= self._max:
            self._connection.pause(PAUSE_PUBLISHES)

    def end(self, messages: int, size: int) -> None:
        """Count messages that are stored or have failed; at half the limit, resume reading."""
        self.pending_messages -= messages
        connection = self._connection
        connection.stored(size)
        if connection.paused & PAUSE_PUBLISHES and self.pending_messages * 2 <= self._max:
            connection.resume(PAUSE_PUBLISHES)

    def spend(self, throttles: Iterable[Throttle], messages: int, size: int) -> None:
        """Count messages against rates; stop reading while one is exceeded."""
        self._throttle.spend(throttles, messages, size)
