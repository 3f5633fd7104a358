"""The exchange by which a client proves who it is, before anything else is carried out for it.

There is no mechanism yet, so `BookieServices` has none and nobody is asked. With one, until the
exchange has succeeded (`AuthHandler.java` of BookKeeper 4.18):

    AUTH by the mechanism's name    one step of the exchange
    START_TLS                       carried out
    an add or a read of version 2   UNAUTHORIZED
    anything else of version 2      the connection is closed
    anything else of version 3      UNAUTHORIZED
    a step that fails               the connection is closed, version 3 hears UNAUTHORIZED before

Invariant: nothing is read or written for a client that has not proved who it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BookieMessage,
    Read,
    ReadEntry,
    StartTls,
    Status,
    StatusOnly,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import Call
from magnetar.core.kernel.errors import Unauthenticated

AUTH_DISABLED: Final = "AuthDisabledPlugin"
"""`AuthProviderFactoryFactory.AUTHENTICATION_DISABLED_PLUGIN_NAME`: what clients with a plugin are
told by a bookie without a mechanism.
"""


class PeerConversation(Protocol):
    """The exchange with one client, as `core/security/access.py` has it for the other protocols."""

    @property
    def who(self) -> str:
        """The client's name; empty until it is proved."""
        ...

    def respond(self, said: bytes) -> bytes:
        """Take what the client says, and answer it; `Unauthenticated` ends the exchange."""
        ...


class PeerMechanism(Struct, frozen=True):
    """How clients prove who they are."""

    plugin: str
    """The name that both sides know it by (`getPluginName`)."""
    begin: Callable[[], PeerConversation]


class Admission:
    """One client that has not proved who it is."""

    def __init__(self, mechanism: PeerMechanism) -> None:
        self._plugin = mechanism.plugin
        self._conversation = mechanism.begin()

    @property
    def is_given(self) -> bool:
        return bool(self._conversation.who)

    def answer(self, event: Call | Adds) -> BookieMessage | Status | None:
        """What a request is answered: a status for a row of adds; None if it is to be carried out.

        `Unauthenticated` closes the connection, after its text for the log.
        """
        if isinstance(event, Adds):
            return Status.UNAUTHORIZED
        request, newer = event.request, isinstance(event.header, Header)
        if isinstance(request, Authenticate) and request.plugin == self._plugin:
            return Authenticate(self._plugin, self._conversation.respond(request.payload))
        if newer:
            return None if isinstance(request, StartTls) else StatusOnly(Status.UNAUTHORIZED)
        if isinstance(request, Add):
            return Added(Status.UNAUTHORIZED, request.ledger_id, request.entry_id)
        if isinstance(request, Read):
            return ReadEntry(Status.UNAUTHORIZED, request.ledger_id, request.entry_id)
        raise Unauthenticated(f"{type(request).__name__} of a client that has not said who it is")
