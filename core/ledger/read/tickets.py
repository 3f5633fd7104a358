"""Tickets: signed permissions to read some ledgers, shown to those who store them. Pure.

    version 1 (1) | expires at, in ms (8) | varints: the first id, and gaps to the others | MAC (32)

The MAC is HMAC-SHA256 over all before it, with a text in front that no other use of the key has, so
that neither a token can be taken for a ticket nor the other way. Ids are sorted: most gaps take a
byte. A ticket says neither for whom it is nor of which topic: whoever has it may read.

Invariant: a ticket is believed only whole, unchanged, and before it expires.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.kernel.varints import number_at, varint, varint_end

KEY_BYTES_MIN: Final = 32
LEDGERS_MAX: Final = 64
"""Of one ticket, so that it is read in microseconds: each connection shows one."""
_PURPOSE: Final = b"magnetar ledger ticket\0"
_VERSION: Final = 1
_head: Final = Layout(">BQ")
_MAC_BYTES: Final = 32
TICKET_BYTES_MAX: Final = _head.size + 10 * LEDGERS_MAX + _MAC_BYTES


class Ticket(Struct, frozen=True):
    """What a ticket says."""

    ledgers: frozenset[int]
    expires_ms: int


class TicketOffice:
    """Where tickets are issued, with the key that is in force: it may be replaced at any time, by
    which all tickets end. Whoever reads asks for new ones then.
    """

    def __init__(self, key: bytes, seconds: float) -> None:
        self.key = key
        self._seconds = seconds

    def issue(
        self, ledger_ids: Iterable[int], now_ms: int
    ) -> Iterator[tuple[Sequence[int], bytes]]:
        """As `issue`, from now on."""
        return issue(self.key, ledger_ids, now_ms + int(1000 * self._seconds))


def check_key(key: bytes) -> bytes:
    """The key, if it is one; raises ValueError."""
    if len(key) < KEY_BYTES_MIN:
        raise ValueError(f"a key of tickets has {KEY_BYTES_MIN} bytes or more, not {len(key)}")
    return key


def issue(
    key: bytes, ledger_ids: Iterable[int], expires_ms: int
) -> Iterator[tuple[Sequence[int], bytes]]:
    """Tickets for all these ledgers, each with those that it is for."""
    wanted = sorted(set(ledger_ids))
    for begin in range(0, len(wanted), LEDGERS_MAX):
        some = wanted[begin : begin + LEDGERS_MAX]
        yield some, _signed(key, some, expires_ms)


def _signed(key: bytes, wanted: Sequence[int], expires_ms: int) -> bytes:
    pieces = [_head.pack(_VERSION, expires_ms)]
    before = 0
    for each in wanted:
        pieces.append(varint(each - before))
        before = each
    said = b"".join(pieces)
    return said + _mac(key, said)


def _mac(key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + said, hashlib.sha256)


def read(key: bytes, ticket: bytes, now_ms: int) -> Ticket:
    """What a ticket permits; raises `Unauthenticated`. Plain call, some 30 us."""
    if not _head.size + _MAC_BYTES < len(ticket) <= TICKET_BYTES_MAX:
        raise Unauthenticated("it is no ticket")
    said, mac = ticket[:-_MAC_BYTES], ticket[-_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(key, said)):
        raise Unauthenticated("the ticket is not signed with the key that is in force here")
    version, expires_ms = _head.unpack_from(said)
    if version != _VERSION:
        raise Unauthenticated(f"the ticket has version {version}, only {_VERSION} is known here")
    if expires_ms <= now_ms:
        raise Unauthenticated("the ticket has expired")
    return Ticket(frozenset(_ids(said)), expires_ms)


def _ids(said: bytes) -> Iterator[int]:
    at, end, before = _head.size, len(said), 0
    while at < end:
        after = varint_end(said, at, end)
        assert after, "what was signed here is whole"
        before += number_at(said, at, after)
        yield before
        at = after
