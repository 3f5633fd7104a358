"""The stored form of a session: one record per client id, and what has changed since. Pure.

    u8 1 | msgpack array of the fields, in the order of the class

A record is stored whole when a connection begins or ends. In between, places and packet identifiers
change at each acknowledgement, and some subscriptions: then they alone are stored, as the session's
*progress*, under a key of its own. It replaces those of the record before it in the log, and is
void once there is a record behind it. When many subscriptions have changed, the record is stored
whole again (`delivery/session_subscriptions.py`). Each of the two is one entry, so after a crash at
any moment the session is as it was at one moment.

The record has what 4.1 calls the state of a session: subscriptions, messages in flight in both
directions, and the will with the expiry, which belong to the connection. Messages that wait to be
sent are not in it: they are in the logs, from the session's place in each on.

Invariant: reading raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.msgpack import Decoder
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted

LAYOUT: Final = 1

Decoded = TypeVar("Decoded")


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
    principal: str = ""
    """Who publishes it (`core/security/identity.py`)."""
    roles: tuple[str, ...] = ()
    host: str = ""
    """From where the client has connected."""


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
    owner: str = ""
    """Whose session it is; empty where nobody authenticates."""


class SessionProgress(Struct, frozen=True, array_like=True):
    """What has changed since the record: its fields that acknowledgements change, and filters."""

    places: tuple[StoredPlace, ...]
    in_flight: tuple[StoredInFlight, ...]
    received: tuple[int, ...]
    marks: tuple[StoredPlace, ...]
    doubts: tuple[StoredPlace, ...]
    changed: tuple[tuple[str, StoredSubscription | None], ...] = ()
    """Filters with their subscriptions; None for those that have ended."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SessionRecord)
_progress_decoder = msgspec.msgpack.Decoder(SessionProgress)


def encode(record: SessionRecord) -> bytes:
    return bytes((LAYOUT,)) + _encoder.encode(record)


def encode_progress(progress: SessionProgress) -> bytes:
    return bytes((LAYOUT,)) + _encoder.encode(progress)


def decode(data: bytes, progress: bytes = b"") -> SessionRecord:
    """A record, with the progress that was stored after it, if there is any."""
    record = _decoded(data, _decoder)
    if progress:
        later = _decoded(progress, _progress_decoder)
        record = replace(
            record,
            subscriptions=_changed(record.subscriptions, later.changed),
            places=later.places,
            in_flight=later.in_flight,
            received=later.received,
            marks=later.marks,
            doubts=later.doubts,
        )
    if any(not 0 <= one.log < len(record.places) for one in record.in_flight):
        raise Corrupted("a session record names a log that it does not have")
    return record


def _changed(
    before: tuple[StoredSubscription, ...],
    changes: tuple[tuple[str, StoredSubscription | None], ...],
) -> tuple[StoredSubscription, ...]:
    """Subscriptions with what has changed since."""
    if not changes:
        return before
    found = {one.filter: one for one in before}
    for filter, one in changes:
        if one is None:
            found.pop(filter, None)
        else:
            found[filter] = one
    return tuple(found.values())


def _decoded(data: bytes, decoder: Decoder[Decoded]) -> Decoded:
    if not data or data[0] != LAYOUT:
        raise Corrupted(f"a session record has layout {data[0] if data else 'none'}")
    try:
        return decoder.decode(data[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Corrupted(f"a session record cannot be decoded: {error}") from None
