"""The context of a request: its header, and its sender.

`RequestContext` is named for Kafka's (`org.apache.kafka.common.requests.RequestContext` of 4.2). A
handler gets one beside the request itself; its constructor names all else that it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from magnetar.core.security.conversation import Conversation
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.kafka.session.wakeup import Wakeup

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.kafka.addresses import Endpoint


class Caller:
    """The client of one connection: its address, its identity, and whether it is still connected.

    Invariant: `closed` wakes every wait of this connection, after `gone` is set.
    """

    __slots__ = ("_wakeups", "connection", "endpoint", "gone", "identity", "listener", "proof")

    def __init__(self, connection: Connection, endpoint: Endpoint, listener: str) -> None:
        self.connection = connection
        self.endpoint = endpoint
        """Our address for clients of this listener, as Metadata returns it (KIP-103)."""
        self.listener = listener
        self.gone = False
        self.identity: Identity = ANYBODY
        self.proof: Conversation | None = None
        """The SASL exchange while it is in progress; it ends with an identity."""
        self._wakeups: set[Wakeup] = set()

    @property
    def host(self) -> str:
        """The client's address without the port."""
        return self.connection.host

    def is_here(self, _now: float) -> bool:
        """Whether the connection is still open."""
        return not self.gone

    def relieved(self) -> None:
        """The client has received earlier responses: wake the waits for room."""
        for wakeup in self._wakeups:
            wakeup.wake()

    def closed(self) -> None:
        """The connection is gone."""
        self.gone = True
        self.relieved()

    @contextmanager
    def wakeup(self) -> Iterator[Wakeup]:
        """A wakeup for one wait: set when the connection is gone or has room."""
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


Handler = Callable[[RequestContext, Any], Awaitable[Any]]
"""Answers one kind of request.

Most handlers are coroutines, which run in a task later. A plain function that returns an awaitable
runs its first part at once, in the order of arrival over all connections.
"""
