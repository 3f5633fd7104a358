"""The stored form of a session: one record per client id. Pure.

    u8 1 | msgpack array of the fields, in the order of the class

The record has what 4.1 calls the state of a session: subscriptions, messages in flight in both
directions, and the will with the expiry, which belong to the connection. Messages that wait to be
sent are not in it: they are in the logs, from the session's place in each on.

Invariant: reading raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import Corrupted

LAYOUT: Final = 1


class StoredSubscription(Struct, frozen=True, array_like=True):
    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0
    """0 for none."""


class StoredPlace(Struct, frozen=True, array_like=True):
    """Where the session continues in one log."""

    log: str
    """The full name of a topic of core."""
    ledger_id: int
    entry_id: int
    place: int


class StoredInFlight(Struct, frozen=True, array_like=True):
    """A message that is sent to the client and not acknowledged."""

    packet_id: int
    log: int
    """Its log, as an index into the places."""
    ledger_id: int
    entry_id: int
    place: int
    qos: int
    released: bool


class StoredWill(Struct, frozen=True, array_like=True):
    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: bytes = b""
    """Encoded, without the will delay interval."""
    delay_seconds: int = 0


class SessionRecord(Struct, frozen=True, array_like=True):
    """See the module's docstring."""

    expiry_seconds: int
    """The session expiry interval; `NEVER_EXPIRES` for no end (3.1.2.11.2)."""
    ended_ms: int = 0
    """When the connection ended; 0 while the client is connected."""
    subscriptions: tuple[StoredSubscription, ...] = ()
    places: tuple[StoredPlace, ...] = ()
    in_flight: tuple[StoredInFlight, ...] = ()
    received: tuple[int, ...] = ()
    """Packet identifiers of QoS 2 that wait for PUBREL."""
    will: StoredWill | None = None
    """The will that is not published yet."""
    marks: tuple[StoredPlace, ...] = ()
    """For each log to which it publishes with QoS 2: `received` covers its messages before that
    place. Empty once the connection has ended in order."""
    doubts: tuple[StoredPlace, ...] = ()
    """Messages from the session's place on, up to these, may have been sent before a crash."""
    crashed: bool = False
    """Whether a former process ended with the connection, and no client has come back since. A
    record without `ended_ms`, too, is of a connection that nobody has ended."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SessionRecord)


def encode(record: SessionRecord) -> bytes:
    return bytes((LAYOUT,)) + _encoder.encode(record)


def decode(data: bytes) -> SessionRecord:
    if not data or data[0] != LAYOUT:
        raise Corrupted(f"a session record has layout {data[0] if data else 'none'}")
    try:
        record: SessionRecord = _decoder.decode(data[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Corrupted(f"a session record cannot be decoded: {error}") from None
    if any(not 0 <= one.log < len(record.places) for one in record.in_flight):
        raise Corrupted("a session record names a log that it does not have")
    return record
