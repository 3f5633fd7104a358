"""Carries requests to bookies and answers back, for one query at a time, in one thread.

Queries are pure (`range_read.py`, `lac_read.py`): they say what is to be sent, and are told
what came. `turn` sends, waits for anything to happen, and tells.

Time stands still between two turns: while the caller works on what he has read, no bookie is slow.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from typing import Protocol

from magnetar.bookie.reading.connection import ReplicaConnection
from magnetar.bookie.reading.sources import Address
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import BrokerError, WireError


class BookieQuery(Protocol):
    """What is said with several bookies about one ledger."""

    def requests(self, now: float) -> list[tuple[str, bytes]]:
        """What is to be sent now: a bookie, and the body of a frame."""
        ...

    def heard(self, bookie: str, now: float) -> None:
        """A bookie sent something, perhaps no whole frame."""
        ...

    def answered(self, bookie: str, frame: bytes, now: float) -> None:
        """A bookie sent a frame; `WireError` if it makes no sense."""
        ...

    def lost(self, bookie: str, reason: str, now: float, *, worked: bool) -> None:
        """The connection ended, or was not made; `worked` says whether it was."""
        ...

    def deadline(self, now: float) -> float | None:
        """When to call `overdue` if nothing happens before."""
        ...

    def overdue(self, now: float) -> list[str]:
        """The bookies that are given up."""
        ...


class Exchange:
    """See the module's docstring. All its connections speak one version of the protocol."""

    def __init__(
        self, address: Callable[[str], Address], proof: Authenticate | None = None
    ) -> None:
        """`proof` is shown to each bookie."""
        self._address = address
        self._proof = proof
        self._selector = selectors.DefaultSelector()
        self._connections: dict[str, ReplicaConnection] = {}
        self._paused = 0.0
        self._left = time.monotonic()

    def turn(self, query: BookieQuery) -> None:
        """Send what is to be sent, wait for something to happen, and tell it."""
        self._paused += time.monotonic() - self._left
        try:
            self._turn(query)
        finally:
            self._left = time.monotonic()

    def _now(self) -> float:
        return time.monotonic() - self._paused

    def _turn(self, query: BookieQuery) -> None:
        while requests := query.requests(self._now()):
            for bookie, body in requests:
                self._send(query, bookie, body)
            for bookie in {bookie for bookie, _ in requests}:
                self._move(query, bookie, 0)
        now = self._now()
        deadline = query.deadline(now)
        if deadline is None:
            return
        for key, mask in self._selector.select(max(deadline - now, 0.0)):
            self._move(query, key.data, mask)
        if self._now() >= deadline:
            for bookie in query.overdue(self._now()):
                self.drop(bookie)
                query.lost(bookie, "does not answer", self._now(), worked=False)

    def _send(self, query: BookieQuery, bookie: str, body: bytes) -> None:
        try:
            connection = self._connections.get(bookie)
            if connection is None:
                connection = ReplicaConnection(*self._address(bookie), self._proof)
                self._connections[bookie] = connection
                events = selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.register(connection.socket, events, bookie)
            connection.send(body)
        except (OSError, BrokerError) as error:
            self._lose(query, bookie, error)

    def _move(self, query: BookieQuery, bookie: str, mask: int) -> None:
        """Go on with a connection whose socket is ready, or that has something to send."""
        connection = self._connections.get(bookie)
        if connection is None:  # it has been dropped in this turn
            return
        try:
            if mask & selectors.EVENT_WRITE and not connection.worked:
                self._connected(bookie, connection)
            if connection.worked and connection.wants_to_write:
                connection.write()
            if mask & selectors.EVENT_READ and connection.worked:
                frames = connection.receive()
                query.heard(bookie, self._now())
                for frame in frames:
                    query.answered(bookie, frame, self._now())
            self._follow(bookie)
        except (OSError, WireError) as error:
            self._lose(query, bookie, error)

    def _connected(self, bookie: str, connection: ReplicaConnection) -> None:
        """See whether the connection is made; its socket may be another one afterwards."""
        before = connection.socket
        self._selector.unregister(before)
        try:
            connection.connected()
        finally:
            if connection.socket.fileno() >= 0:
                events = selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.register(connection.socket, events, bookie)

    def _follow(self, bookie: str) -> None:
        """Wait for what the connection waits for."""
        connection = self._connections[bookie]
        events = selectors.EVENT_READ | connection.wants_to_write * selectors.EVENT_WRITE
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, bookie)

    def _lose(self, query: BookieQuery, bookie: str, error: Exception) -> None:
        connection = self._connections.get(bookie)
        # Who was refused is refused again: the connection is not made once more.
        refused = isinstance(error, PermissionError)
        worked = connection is not None and connection.worked and not refused
        self.drop(bookie)
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = f"left: {text}" if worked else f"cannot be reached: {text}"
        if refused:
            reason = f"cannot be read: {text}"
        query.lost(bookie, reason, self._now(), worked=worked)

    def drop(self, bookie: str) -> None:
        """Close the connection to a bookie; the next request makes another one."""
        connection = self._connections.pop(bookie, None)
        if connection is not None:
            if connection.socket.fileno() >= 0:
                self._selector.unregister(connection.socket)
            connection.close()

    def close(self) -> None:
        for bookie in list(self._connections):
            self.drop(bookie)
        self._selector.close()
