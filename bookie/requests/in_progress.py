"""Requests of one kind that are in progress, of all connections together, and their limit.

At the limit a connection that brings another one is not read until some have been answered. What
it has sent before is carried out. Apache's bookie blocks the thread of that connection
(`BookieRequestProcessor.onAddRequestStart`, `onReadRequestStart` of 4.18).

Invariant: below the limit no connection is paused.
"""

from __future__ import annotations

from magnetar.core.link.connection import Connection


class InProgress:
    """See the module's docstring. A limit of 0 is none."""

    def __init__(self, limit: int, reason: int) -> None:
        """`reason` is the one to pause a connection, which nobody else uses here."""
        self.count = self.blocked = 0
        """How many there are, and how often one had its connection wait since the start."""
        self._limit = limit
        self._reason = reason
        self._paused: set[Connection] = set()

    def begin(self, connection: Connection, count: int = 1) -> None:
        self.count += count
        if self._limit and self.count >= self._limit:
            self.blocked += 1
            connection.pause(self._reason)
            self._paused.add(connection)

    def end(self, count: int = 1) -> None:
        self.count -= count
        if self._paused and self.count < self._limit:
            paused, self._paused = self._paused, set()
            for connection in paused:
                connection.resume(self._reason)
