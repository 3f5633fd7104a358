"""What clients and bookies say to each other, whatever the version of the protocol. Pure.

Names are those of Apache's protocol (`BookkeeperProtocol.proto`, `BookieProtocol.java` of 4.18);
LAC is the last add confirmed. `version2.py` and `version3.py` have the bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

LAST_ENTRY: Final = -1
"""As the entry id of a read: the last entry that the bookie has."""


class Status(enum.Enum):
    """How a request ended."""

    OK = "ok"
    NO_LEDGER = "no such ledger"
    NO_ENTRY = "no such entry"
    BAD_REQUEST = "bad request"
    IO_ERROR = "i/o error"
    UNAUTHORIZED = "unauthorized"
    BAD_VERSION = "bad protocol version"
    FENCED = "fenced"
    READ_ONLY = "read-only"
    TOO_MANY_REQUESTS = "too many requests"
    UNKNOWN_LEDGER_STATE = "unknown ledger state"


class BookieMessage(msgspec.Struct, frozen=True, gc=False):
    """A request or a response."""


class Add(BookieMessage, frozen=True, gc=False):
    """Store an entry; `entry` is as it is stored, with its header and digest."""

    ledger_id: int
    entry_id: int
    master_key: bytes
    entry: bytes
    recovery: bool = False
    """Of a client that recovers the ledger: accepted in spite of a fence."""
    high_priority: bool = False
    deferred_sync: bool = False
    """Acknowledged when it is written, before it is synced."""


class Added(BookieMessage, frozen=True, gc=False):
    """The response to `Add`."""

    status: Status
    ledger_id: int
    entry_id: int


class Read(BookieMessage, frozen=True, gc=False):
    """Read one entry, or `LAST_ENTRY`."""

    ledger_id: int
    entry_id: int
    master_key: bytes | None = None
    fence: bool = False
    """Refuse all further adds first, durably."""
    high_priority: bool = False
    previous_lac: int | None = None
    """Wait until the LAC is beyond this one."""
    timeout_ms: int | None = None
    piggyback: bool = False
    """With `previous_lac`: answer with the entry after it."""


class ReadEntry(BookieMessage, frozen=True, gc=False):
    """The response to `Read`."""

    status: Status
    ledger_id: int
    entry_id: int
    entry: bytes | None = None
    lac: int | None = None
    lac_updated_ms: int | None = None


class BatchRead(BookieMessage, frozen=True, gc=False):
    """Read entries from `first` on; version 2 only."""

    ledger_id: int
    first: int
    request_id: int
    count_max: int
    """0 or less: as many as fit."""
    bytes_max: int
    master_key: bytes | None = None
    fence: bool = False


class ReadEntries(BookieMessage, frozen=True, gc=False):
    """The response to `BatchRead`."""

    status: Status
    ledger_id: int
    first: int
    request_id: int
    entries: Sequence[bytes] = ()
    records: Sequence[bytes | memoryview] = ()
    """Instead, of a bookie: pieces of any number of entries, each behind its length."""


class Authenticate(BookieMessage, frozen=True, gc=False):
    """A part of an authentication, in both directions."""

    plugin: str
    payload: bytes


class WriteLac(BookieMessage, frozen=True, gc=False):
    """Store an explicit LAC; `packet` is it with its digest."""

    ledger_id: int
    lac: int
    master_key: bytes
    packet: bytes


class WroteLac(BookieMessage, frozen=True, gc=False):
    """The response to `WriteLac`."""

    status: Status
    ledger_id: int


class ReadLac(BookieMessage, frozen=True, gc=False):
    """Read the explicit LAC and the last entry."""

    ledger_id: int


class Lac(BookieMessage, frozen=True, gc=False):
    """The response to `ReadLac`."""

    status: Status
    ledger_id: int
    packet: bytes | None = None
    last_entry: bytes | None = None


class GetBookieInfo(BookieMessage, frozen=True, gc=False):
    """Ask for the capacity of the disks."""

    total: bool
    free: bool


class BookieInfo(BookieMessage, frozen=True, gc=False):
    """The response to `GetBookieInfo`: bytes, those that were asked for."""

    status: Status
    total: int | None = None
    free: int | None = None


class StartTls(BookieMessage, frozen=True, gc=False):
    """Begin TLS behind the response; always sent in version 3."""


class TlsStarted(BookieMessage, frozen=True, gc=False):
    """The response to `StartTls`."""

    status: Status


class ForceLedger(BookieMessage, frozen=True, gc=False):
    """Sync everything that was added to the ledger."""

    ledger_id: int


class Forced(BookieMessage, frozen=True, gc=False):
    """The response to `ForceLedger`."""

    status: Status
    ledger_id: int


class ListEntries(BookieMessage, frozen=True, gc=False):
    """Ask for the ids of the ledger's entries on this bookie."""

    ledger_id: int


class EntryList(BookieMessage, frozen=True, gc=False):
    """The response to `ListEntries`; `availability` is Apache's encoding of a set of entry ids
    (`AvailabilityOfEntriesOfLedger.java` of 4.18).
    """

    status: Status
    ledger_id: int
    availability: bytes | None = None


class Unanswerable(BookieMessage, frozen=True, gc=False):
    """A frame that is no request: in a version that is not spoken, or well-formed as protobuf
    without a meaning; `status` says which.
    """

    status: Status


class StatusOnly(BookieMessage, frozen=True, gc=False):
    """A response without anything but a status, to any request."""

    status: Status
