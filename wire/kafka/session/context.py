"""The context of a request: its header, and its sender.

`RequestContext` is named for Kafka's (`org.apache.kafka.common.requests.RequestContext` of 4.2). A
handler gets one beside the request itself; its constructor names all else that it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from magnetar.core.broker.access import ANYBODY, Conversation
from magnetar.wire.kafka.session.wakeup import Wakeup

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.kafka.addresses import Endpoint


class Caller:
    """One connection: who is at its other end, and what may be packed for it.

    Invariant: `closed` wakes everything that waits, which finds it `gone`.
    """

    __slots__ = ("_wakeups", "connection", "endpoint", "gone", "listener", "principal", "proof")

    def __init__(self, connection: Connection, endpoint: Endpoint, listener: str) -> None:
        self.connection = connection
        self.endpoint = endpoint
        """The address that clients of this listener are given for us."""
        self.listener = listener
        self.gone = False
        self.principal = ANYBODY
        self.proof: Conversation | None = None
        """By which it becomes somebody, while that goes on."""
        self._wakeups: set[Wakeup] = set()

    @property
    def host(self) -> str:
        """Its address without the port."""
        return self.connection.host

    def is_here(self, _now: float) -> bool:
        """Whether its connection is still open."""
        return not self.gone

    def relieved(self) -> None:
        """It has taken what was sent: who held back looks again."""
        for wakeup in self._wakeups:
            wakeup.wake()

    def closed(self) -> None:
        """Its connection is gone."""
        self.gone = True
        self.relieved()

    @contextmanager
    def wakeup(self) -> Iterator[Wakeup]:
        """For somebody who waits: woken when the connection is gone, or has room."""
        made = Wakeup()
        self._wakeups.add(made)
        try:
            yield made
        finally:
            self._wakeups.discard(made)


class RequestContext(Struct, frozen=True):
    """See the module's docstring."""

    key: int
    version: int
    correlation_id: int
    client_id: str
    caller: Caller


Reply = "Response | list[bytes] | None"
"""A response, the pieces of one that is encoded already, or None for none."""
Handler = Callable[[RequestContext, Any], Awaitable[Any]]
"""Answers one kind of request, later.

Most are called now and run later. One that is plain, and returns what is to be awaited, does
something at once: so it can see to it that two of a kind are done in their order, whichever
connections they came from.
"""
