"""What a bookie asks its clients for, from the settings.

    a token           signed with a key of all tokens
    SASL              a name and a password of `bookie_digest`
    a certificate     if `bookie_roles` says whose count
    a ticket          for readers of ledgers, signed with `ticket_key`

Roles that may do everything at a bookie are `superusers` and `bookie_roles` (`authorizedRoles` of
Apache's `BookieAuthZFactory.java`, 4.18).

Invariants: with any of these ways, nobody is let in who has proved nothing, and whoever fails is
noted (`core/security/failures.py`).
"""

from __future__ import annotations

import logging
import secrets
import ssl
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from magnetar.bookie.requests.authentication import BookieAccess, PeerConversation, PeerGrant
from magnetar.bookie.rpc.credentials import (
    DIGEST_REALM,
    DIGEST_URI,
    SASL,
    TICKET,
    TOKEN,
)
from magnetar.bookie.rpc.digest_md5 import DigestServer
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.ledger.read import tickets
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.core.security.failures import FailedLogins
from magnetar.operator_error import OperatorError
from magnetar.security.access import GuardedAccess, open_access
from magnetar.security.certificate_roles import roles_in
from magnetar.security.shown_credentials import ShownCredentials, nonce
from magnetar.settings.security import Security

if TYPE_CHECKING:
    from magnetar.core.security.identity import Identity

log = logging.getLogger(__name__)
HEX_DIGITS: Final = 32
"""Of MD5."""


# -- what a bookie asks for -------------------------------------------------------------------


class Roles:
    """Who may do everything at a bookie."""

    def __init__(self, settings: Security) -> None:
        self._anybody = not settings.authorization
        self._allowed = frozenset((*settings.superusers, *settings.bookie_roles))

    def grant(
        self, name: str, roles: Collection[str], expires_in: float | None = None
    ) -> PeerGrant:
        """What somebody may do; raises `Unauthenticated` if that is nothing."""
        if not self._anybody and self._allowed.isdisjoint(roles):
            raise Unauthenticated(f"{name} may not use bookies: security.bookie_roles says who")
        return PeerGrant(name, expires_in)


class _Exchange:
    """One that `step` carries out: it gives the answer, and what is proved by then."""

    def __init__(self, step: Callable[[bytes], tuple[bytes, PeerGrant | None]]) -> None:
        self.grant: PeerGrant | None = None
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

        def token_step(said: bytes) -> tuple[bytes, PeerGrant]:
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
    certificate = (
        _certificate(roles, clock) if with_certificates and settings.bookie_roles else None
    )
    if not mechanisms and certificate is None and not guarded.access.asks:
        return None
    if office is not None:

        def ticket_step(said: bytes) -> tuple[bytes, PeerGrant]:
            now_ms = clock.wall_ms()
            ticket = tickets.read(office.key, said, now_ms)
            return b"", PeerGrant("a ticket", (ticket.expires_ms - now_ms) / 1000, ticket.ledgers)

        mechanisms[TICKET] = lambda: _Exchange(ticket_step)
    failures = guarded.access.failures
    if failures is None:  # nobody is asked but here
        failures = guarded.access.failures = FailedLogins(clock, guarded.access.audit)
    return BookieAccess(mechanisms, certificate, failures.is_barred, failures.note, failures.passed)


def _digest(people: Mapping[str, bytes], roles: Roles) -> PeerConversation:
    server = DigestServer(people, DIGEST_REALM, DIGEST_URI, nonce())

    def step(said: bytes) -> tuple[bytes, PeerGrant | None]:
        answer = server.respond(said)
        return answer, roles.grant(server.name, (server.name,)) if server.name else None

    return _Exchange(step)


def _certificate(roles: Roles, clock: Clock) -> Callable[[ssl.SSLObject], PeerGrant | None]:
    def prove(tls: ssl.SSLObject) -> PeerGrant | None:
        """None for whoever has to prove something else."""
        shown = tls.getpeercert() or {}
        found, until = roles_in(shown), str(shown.get("notAfter", ""))
        left = ssl.cert_time_to_seconds(until) - clock.wall_ms() / 1000 if until else None
        try:
            return roles.grant(found[0], found[:1], left) if found else None
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


# -- all of a bookie's process ----------------------------------------------------------------


class BookieSecurity(Struct, frozen=True):
    """Who may use a bookie that runs alone, and who it is to others."""

    guarded: GuardedAccess
    """Of its HTTP paths."""
    access: BookieAccess | None
    """Of its own protocol; None if nobody is asked."""
    shown: ShownCredentials

    def asks(self, *, over_http: bool) -> bool:
        """Whether all that reach it are asked who they are."""
        return self.access is not None and (not over_http or self.guarded.access.asks)

    async def run(self) -> None:
        """Read again what changes, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.guarded.run)
            nursery.start_soon(self.shown.run)


def open_bookie_security(settings: Security, clock: Clock, *, with_ca: bool) -> BookieSecurity:
    """From the settings; `with_ca` says whether certificates of clients are verified. What HTTP
    alone can ask, or only readers have, is not enough: an `OperatorError`.
    """
    guarded = open_access(settings, clock)
    office = open_tickets(settings, guarded)
    access = open_bookie_access(settings, guarded, clock, office, with_certificates=with_ca)
    asks_writers = access is not None and (
        access.certificate is not None or {TOKEN, SASL} & access.mechanisms.keys()
    )
    if not asks_writers and (access is not None or office is not None):
        raise OperatorError(
            "nobody could write to this bookie: its clients prove who they are by a token "
            "(security.token_secret_key, token_public_key, token_jwks), by security.bookie_digest, "
            "or by a certificate (security.bookie_roles and tls.client_ca)"
        )
    return BookieSecurity(guarded, access, ShownCredentials(settings))
