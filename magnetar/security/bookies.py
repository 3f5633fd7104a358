"""Authentication between bookies and their clients, from the settings: what a bookie asks for, and
what a client of bookies shows.

    a bookie asks for     a token, by the keys of all tokens; a name of `bookie_digest`, by SASL; a
                          certificate, if `bookie_roles` says whose count; a ticket, for readers
    a client shows        `bookie_token`, or `bookie_password`

Roles that may do everything at a bookie are `superusers` and `bookie_roles` (`authorizedRoles` of
Apache's `BookieAuthZFactory.java`, 4.18).

Invariant: with any of these ways, nobody is let in who has proved nothing.
"""

from __future__ import annotations

import logging
import secrets
import ssl
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import trio

from magnetar.bookie.client.connection.authenticated_network import AuthenticatedNetwork
from magnetar.bookie.requests.authentication import BookieAccess, Grant, PeerConversation
from magnetar.bookie.rpc.credentials import (
    DIGEST_REALM,
    DIGEST_URI,
    SASL,
    TICKET,
    TOKEN,
    Credentials,
    PasswordCredentials,
    TokenCredentials,
)
from magnetar.bookie.rpc.digest_md5 import DigestServer
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.ledger.read import tickets
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.core.ports.network import Network
from magnetar.operator_error import OperatorError
from magnetar.security.access import GuardedAccess
from magnetar.security.certificate_roles import roles_in
from magnetar.security.sources import LOOK_SECONDS, SecretSource
from magnetar.settings.security import Security

if TYPE_CHECKING:
    from magnetar.core.security.identity import Identity

log = logging.getLogger(__name__)
HEX_DIGITS: Final = 32
"""Of MD5."""


def _nonce() -> str:
    return secrets.token_hex(16)


# -- what a bookie asks for -------------------------------------------------------------------


class Roles:
    """Who may do everything at a bookie."""

    def __init__(self, settings: Security) -> None:
        self._anybody = not settings.authorization
        self._allowed = frozenset((*settings.superusers, *settings.bookie_roles))

    def grant(self, name: str, roles: Collection[str], expires_in: float | None = None) -> Grant:
        """What somebody may do; raises `Unauthenticated` if that is nothing."""
        if not self._anybody and self._allowed.isdisjoint(roles):
            raise Unauthenticated(f"{name} may not use bookies: security.bookie_roles says who")
        return Grant(name, expires_in)


class _Exchange:
    """One that `step` carries out: it gives the answer, and what is proved by then."""

    def __init__(self, step: Callable[[bytes], tuple[bytes, Grant | None]]) -> None:
        self.grant: Grant | None = None
        self._step = step

    def respond(self, said: bytes) -> bytes:
        answer, self.grant = self._step(said)
        return answer


def open_bookie_access(
    settings: Security,
    guarded: GuardedAccess,
    clock: Clock,
    office: TicketOffice | None,
    *,
    with_certificates: bool = False,
) -> BookieAccess | None:
    """What clients of a bookie are asked for; None for nothing. `office` has the key of tickets;
    certificates count where clients have to show those of a CA that is known.
    """
    roles = Roles(settings)
    mechanisms: dict[str, Callable[[], PeerConversation]] = {}
    if guarded.tokens is not None:
        verify = guarded.tokens.verify

        def token_step(said: bytes) -> tuple[bytes, Grant]:
            who: Identity = verify(said)
            expires_in = None
            if who.expires_at is not None:
                expires_in = max(who.expires_at - clock.wall_ms() / 1000, 0.0)
            return b"", roles.grant(who.name, who.roles, expires_in)

        mechanisms[TOKEN] = lambda: _Exchange(token_step)
    if settings.bookie_digest:
        people: dict[str, bytes] = {}

        def take(raw: bytes) -> None:
            found = digests_in(raw.decode())
            people.clear()
            people.update(found)

        guarded.open("bookie_digest", settings.bookie_digest, take)
        mechanisms[SASL] = lambda: _digest(people, roles)
    certificate = _certificate(roles) if with_certificates and settings.bookie_roles else None
    if not mechanisms and certificate is None and not guarded.access.asks:
        return None
    if office is not None:

        def ticket_step(said: bytes) -> tuple[bytes, Grant]:
            now_ms = clock.wall_ms()
            ticket = tickets.read(office.key, said, now_ms)
            return b"", Grant("a ticket", (ticket.expires_ms - now_ms) / 1000, ticket.ledgers)

        mechanisms[TICKET] = lambda: _Exchange(ticket_step)
    failures = guarded.failures
    if failures is None:
        return BookieAccess(mechanisms, certificate)
    return BookieAccess(mechanisms, certificate, failures.is_barred, failures.note)


def _digest(people: Mapping[str, bytes], roles: Roles) -> PeerConversation:
    server = DigestServer(people, DIGEST_REALM, DIGEST_URI, _nonce())

    def step(said: bytes) -> tuple[bytes, Grant | None]:
        answer = server.respond(said)
        return answer, roles.grant(server.name, (server.name,)) if server.name else None

    return _Exchange(step)


def _certificate(roles: Roles) -> Callable[[ssl.SSLObject], Grant | None]:
    def prove(tls: ssl.SSLObject) -> Grant | None:
        """None for whoever has to prove something else."""
        found = roles_in(tls.getpeercert() or {})
        try:
            return roles.grant(found[0], found[:1]) if found else None
        except Unauthenticated as error:
            log.info("a certificate proves nothing: %s", error)
            return None

    return prove


def digests_in(text: str) -> dict[str, bytes]:
    """The names and secrets of a file of `htdigest`'s form; raises ValueError."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, realm, secret = ([*line.split(":"), "", ""])[:3]
        if realm != DIGEST_REALM or len(secret) != HEX_DIGITS or not name:
            raise ValueError(f"line {number} is not NAME:{DIGEST_REALM}:MD5, as htdigest writes it")
        try:
            found[name] = bytes.fromhex(secret)
        except ValueError:
            raise ValueError(f"line {number} has no MD5 in hexadecimal digits") from None
    return found


# -- tickets ----------------------------------------------------------------------------------


def open_tickets(settings: Security, guarded: GuardedAccess) -> TicketOffice | None:
    """The office with the key that is set, if one is; it is read again when it changes."""
    if not settings.ticket_key:
        return None
    office = TicketOffice(b"", settings.ticket_seconds)

    def take(raw: bytes) -> None:
        office.key = tickets.check_key(raw)

    guarded.open("ticket_key", settings.ticket_key, take)
    return office


def own_tickets(settings: Security) -> TicketOffice:
    """For a server whose bookie is its own: a key that nobody else needs, until it ends."""
    return TicketOffice(secrets.token_bytes(tickets.KEY_BYTES_MIN), settings.ticket_seconds)


# -- what a client shows ----------------------------------------------------------------------


class ShownCredentials:
    """The credentials of this process at bookies, read again when their file changes."""

    def __init__(self, settings: Security) -> None:
        """Raises `OperatorError` for files that cannot be used."""
        self.credentials: Credentials | None = None
        """None to show nothing."""
        self._source: SecretSource | None = None
        self._changed = False
        if settings.bookie_token and settings.bookie_password:
            raise OperatorError(
                "security.bookie_token and security.bookie_password are both set: bookies are "
                "shown one of them"
            )
        if settings.bookie_token:
            self._open("bookie_token", settings.bookie_token, self._tokens())
        elif settings.bookie_password:
            self._open("bookie_password", settings.bookie_password, self._passwords())

    def _open(self, setting: str, where: str, take: Callable[[bytes], None]) -> None:
        self._source = SecretSource(f"security.{setting}", where, take)
        self._source.open()

    def _tokens(self) -> Callable[[bytes], None]:
        shown = self.credentials = TokenCredentials()

        def take(raw: bytes) -> None:
            token = raw.strip().removeprefix(b"token:")
            if not token or len(token.split()) != 1:
                raise ValueError("it holds no token")
            shown.token = token
            self._changed = True

        return take

    def _passwords(self) -> Callable[[bytes], None]:
        shown = self.credentials = PasswordCredentials(_nonce)

        def take(raw: bytes) -> None:
            name, colon, password = raw.decode().rstrip("\r\n").partition(":")
            if not name or not colon:
                raise ValueError("it is not NAME:PASSWORD")
            shown.name, shown.password = name, password

        return take

    def network(self, network: Network) -> Network:
        """Connections to bookies that know who asks."""
        if self.credentials is None:
            return network
        return AuthenticatedNetwork(network, self.credentials)

    def first_words(self) -> Authenticate | None:
        """What is said on a connection before all else by those who cannot hold a conversation."""
        shown = self.credentials
        if not isinstance(shown, TokenCredentials):
            return None
        return Authenticate(shown.plugin, shown.token)

    async def run(self, say: Callable[[Authenticate], None] = lambda _words: None) -> None:
        """Read again what changes, until cancelled; `say` tells a new token on all connections,
        before the bookies end them for the old one.
        """
        self._changed = False
        while self._source is not None:
            await trio.sleep(LOOK_SECONDS)
            self._source.look()
            words = self.first_words()
            if self._changed and words is not None:
                say(words)
            self._changed = False
