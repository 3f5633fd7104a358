"""The exchange by which a client proves who it is, before anything else is carried out for it.

A bookie without mechanisms asks nobody. With some, until an exchange has succeeded
(`AuthHandler.java` of BookKeeper 4.18, which knows one mechanism at a time):

    AUTH by a mechanism's name      one step of its exchange
    START_TLS                       carried out; a certificate that names the client is a proof
                                    for whatever else it asks: what it says goes before
    an add or a read of version 2   UNAUTHORIZED
    anything else of version 2      the connection is closed
    anything else of version 3      UNAUTHORIZED
    a step that fails               the connection is closed, version 3 hears UNAUTHORIZED before
    nothing for `PROOF_SECONDS`     the connection is closed

Most proofs allow everything. A ticket allows to read the ledgers that it names, and nothing else
(`Confined`): what else is asked for is answered as to a client that has proved nothing. A proof
holds for its connection until it expires. Whoever shows another one in time goes on; Apache's
clients never do.

Invariant: nothing is read or written for a client that has not proved who it is.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BatchRead,
    BookieMessage,
    ListEntries,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import Call
from magnetar.core.kernel.errors import Unauthenticated

PROOF_SECONDS: Final = 30.0
"""How long a connection may be open without a proof."""
BY_CERTIFICATE: Final = "tls"
"""The mechanism of a client that shows a certificate, for who counts proofs."""


class PeerGrant(Struct, frozen=True):
    """What a client has proved."""

    name: str
    expires_in: float | None = None
    """Seconds from now; None for never."""
    ledgers: frozenset[int] | None = None
    """The ledgers that it may read; None if it may do everything."""


class PeerConversation(Protocol):
    """The exchange with one client, as `core/security/conversation.py` has it for the other
    protocols, but nothing is waited for.
    """

    @property
    def grant(self) -> PeerGrant | None:
        """None until the proof is there."""
        ...

    def respond(self, said: bytes) -> bytes:
        """Take what the client says, and answer it; `Unauthenticated` ends the exchange."""
        ...


class BookieAccess(Struct, frozen=True):
    """How clients prove who they are."""

    mechanisms: Mapping[str, Callable[[], PeerConversation]]
    """By the name that both sides know (`getPluginName`)."""
    certificate: Callable[[ssl.SSLObject], PeerGrant | None] | None = None
    """What the certificate of a client proves, once it is verified; None if that counts nothing."""
    is_barred: Callable[[str], bool] = lambda _host: False
    """Whether an address has failed so often that it has to wait."""
    failed: Callable[[str, str, str], None] = lambda _host, _mechanism, _why: None
    """Told of each failure: the client's address, the mechanism, and why."""
    succeeded: Callable[[str], None] = lambda _mechanism: None
    """Told of each proof, by its mechanism."""


class Admission:
    """One client that has not proved who it is."""

    def __init__(self, access: BookieAccess, host: str) -> None:
        self.grant: PeerGrant | None = None
        self._access = access
        self._host = host
        self._plugin = ""
        self._certificate_seen = False
        self._conversation: PeerConversation | None = None

    def take_certificate(self, tls: ssl.SSLObject) -> PeerGrant | None:
        """The connection is encrypted, and the client has shown what it has: looked at once. What
        is proved by now.
        """
        if self._access.certificate is not None and not self._certificate_seen:
            self._certificate_seen = True
            self.grant = self._access.certificate(tls)
            if self.grant is not None:
                self._access.succeeded(BY_CERTIFICATE)
        return self.grant

    def is_step(self, event: Call | Adds) -> bool:
        """Whether a request is a step of an exchange."""
        if not isinstance(event, Call) or not isinstance(event.request, Authenticate):
            return False
        return event.request.plugin in self._access.mechanisms

    def answer(self, event: Call | Adds) -> BookieMessage | Status | None:
        """What a request is answered: a status for a row of adds; None if it is to be carried out.

        `Unauthenticated` closes the connection, after its text for the log.
        """
        if isinstance(event, Call) and isinstance(event.request, Authenticate):
            request = event.request
            if request.plugin in self._access.mechanisms:
                return Authenticate(request.plugin, self._step(request))
        elif isinstance(event, Call) and isinstance(event.request, StartTls):
            return None
        elif isinstance(event, Call) and isinstance(event.request, BatchRead):
            raise Unauthenticated("a batch read of a client that has not said who it is")
        return refusal(event)

    def _step(self, request: Authenticate) -> bytes:
        plugin = request.plugin
        try:
            if self._access.is_barred(self._host):
                raise Unauthenticated("too many failed logins from this address, wait a little")
            if self._conversation is None or plugin != self._plugin:
                self._plugin, self._conversation = plugin, self._access.mechanisms[plugin]()
            said = self._conversation.respond(request.payload)
        except Unauthenticated as error:
            self._access.failed(self._host, plugin, str(error))
            raise
        self.grant = self._conversation.grant
        if self.grant is not None:
            self._access.succeeded(plugin)
        return said


class Confined:
    """One client that may read some ledgers."""

    def __init__(self, ledgers: frozenset[int]) -> None:
        self._ledgers = ledgers

    def answer(self, event: Call | Adds) -> BookieMessage | Status | None:
        """As `Admission.answer`."""
        if isinstance(event, Call):
            request = event.request
            if isinstance(request, Read | BatchRead):
                if not request.fence and request.ledger_id in self._ledgers:
                    return None
            elif isinstance(request, ReadLac | ListEntries):
                if request.ledger_id in self._ledgers:
                    return None
            elif isinstance(request, Authenticate | StartTls):
                return None
        return refusal(event)


def refusal(event: Call | Adds) -> BookieMessage | Status:
    """The answer to what a client may not do; `Unauthenticated` if there is none."""
    if isinstance(event, Adds):
        return Status.UNAUTHORIZED
    request = event.request
    if isinstance(event.header, Header):
        return StatusOnly(Status.UNAUTHORIZED)
    if isinstance(request, Add):
        return Added(Status.UNAUTHORIZED, request.ledger_id, request.entry_id)
    if isinstance(request, Read):
        return ReadEntry(Status.UNAUTHORIZED, request.ledger_id, request.entry_id)
    if isinstance(request, BatchRead):
        ledger_id, first, request_id = request.ledger_id, request.first, request.request_id
        return ReadEntries(Status.UNAUTHORIZED, ledger_id, first, request_id)
    raise Unauthenticated(f"{type(request).__name__} of a client that has not said who it is")
