"""Version 2 of the protocol: fixed layouts, as Pulsar's brokers speak it. Pure.

All integers are big-endian; a frame is a length of 4 bytes and what is below (`BookieProtocol.java`
and `BookieProtoEncoding.java` of 4.18):

    header                 version in bits 31..24, opcode in bits 23..16, flags in bits 15..0
    add                    header | master key (20) | entry as it is stored
    read                   header | ledger (8) | entry (8) | master key (20) with DO_FENCING
    batch read             header | ledger | first entry | request id (8) | count (4) | bytes (8)
                           | master key (20) with DO_FENCING
    auth, both directions  header | protobuf AuthMessage
    response               header | error code (4) | ledger (8) | entry (8)
      to a read            ... | the entry, if there is no error
      to a batch read      ... | request id (8) | [length (4) | entry] until the end

A response has the version and the opcode of its request, and no flags. A response to a read of the
last entry says -1, as its request does; the id is in the entry.

Invariant: what is packed here is parsed here to the same message.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from struct import Struct as Layout
from typing import Final

from google.protobuf.message import DecodeError

from magnetar.bookie.format.entries import ENTRY_BYTES_MIN
from magnetar.bookie.proto.requests_pb2 import AuthMessage
from magnetar.bookie.rpc import rows
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BatchRead,
    BookieMessage,
    Read,
    ReadEntries,
    ReadEntry,
    Status,
    StatusOnly,
    Unanswerable,
)
from magnetar.core.kernel.errors import WireError

VERSION: Final = 2
VERSION_MIN: Final = 1
"""Without keys in fencing reads. Apache's bookies accept 0 as well, whose header is an opcode and
nothing else (`BookieProtocol.LOWEST_COMPAT_PROTOCOL_VERSION`); no client has spoken it since 4.0.
"""
ADD: Final = rows.ADD
READ: Final = 2
AUTH: Final = 3
BATCH_READ: Final = 7
OPCODES: Final = (ADD, READ, AUTH, BATCH_READ)
DO_FENCING: Final = 1
RECOVERY_ADD: Final = 2
HIGH_PRIORITY: Final = 4
KEY_BYTES: Final = 20
ENTRY_AT: Final = 4 + KEY_BYTES
"""Where the entry begins in the frame of an add."""
NOWHERE: Final = -1
"""The ids in a response to a request in another version."""

CODES: Final[Mapping[Status, int]] = {
    Status.OK: 0,
    Status.NO_LEDGER: 1,
    Status.NO_ENTRY: 2,
    Status.BAD_REQUEST: 100,
    Status.IO_ERROR: 101,
    Status.UNAUTHORIZED: 102,
    Status.BAD_VERSION: 103,
    Status.FENCED: 104,
    Status.READ_ONLY: 105,
    Status.TOO_MANY_REQUESTS: 106,
    Status.UNKNOWN_LEDGER_STATE: 107,
}
STATUSES: Final = {code: status for status, code in CODES.items()}

_header = Layout(">I")
_ids = Layout(">qq")
_batch = Layout(">qqqiq")
_response = Layout(">Iiqq")
_request_id = Layout(">q")
_length = Layout(">I")


def header(opcode: int, flags: int = 0, version: int = VERSION) -> int:
    return version << 24 | opcode << 16 | flags


def opcode_of(header: int) -> int:
    return header >> 16 & 0xFF


# -- requests -------------------------------------------------------------------------------------


def pack_request(request: BookieMessage) -> bytes:
    """The frame's body; `WireError` for a request that version 2 does not have."""
    match request:
        case Add():
            flags = request.recovery * RECOVERY_ADD | request.high_priority * HIGH_PRIORITY
            return _header.pack(header(ADD, flags)) + request.master_key + request.entry
        case Read():
            flags = request.fence * DO_FENCING | request.high_priority * HIGH_PRIORITY
            ids = _ids.pack(request.ledger_id, request.entry_id)
            return _header.pack(header(READ, flags)) + ids + _key(request)
        case BatchRead():
            fields = _batch.pack(
                request.ledger_id,
                request.first,
                request.request_id,
                request.count_max,
                request.bytes_max,
            )
            flags = request.fence * DO_FENCING
            return _header.pack(header(BATCH_READ, flags)) + fields + _key(request)
        case Authenticate():
            return _pack_auth(header(AUTH), request)
        case _:
            raise WireError(f"version 2 has no {type(request).__name__}")


def _key(request: Read | BatchRead) -> bytes:
    return (request.master_key or bytes(KEY_BYTES)) if request.fence else b""


def parse_request(frame: bytes) -> tuple[int, BookieMessage]:
    """The header, to be kept for the response, and the request."""
    try:
        (head,) = _header.unpack_from(frame)
        if opcode_of(head) in OPCODES and not VERSION_MIN <= head >> 24 <= VERSION:
            return head, Unanswerable(Status.BAD_VERSION)
        return head, _parse_request(head, frame)
    except struct.error as error:
        raise WireError(f"a request of {len(frame)} bytes is too short") from error


def _parse_request(head: int, frame: bytes) -> BookieMessage:
    flags = head & 0xFFFF
    match opcode_of(head):
        case 1:
            return _parse_add(flags, frame)
        case 2:
            ledger_id, entry_id = _ids.unpack_from(frame, 4)
            key = _parse_key(head, frame, 20)
            high = flags & HIGH_PRIORITY != 0
            return Read(ledger_id, entry_id, key, flags & DO_FENCING != 0, high)
        case 3:
            return _parse_auth(frame)
        case 7:
            ledger_id, first, request_id, count, size = _batch.unpack_from(frame, 4)
            key, fence = _parse_key(head, frame, 40), flags & DO_FENCING != 0
            return BatchRead(ledger_id, first, request_id, count, size, key, fence)
        case other:
            raise WireError(f"a request with the opcode {other}")


def _parse_add(flags: int, frame: bytes) -> Add:
    if len(frame) < ENTRY_AT + ENTRY_BYTES_MIN:
        raise WireError(f"an add of {len(frame)} bytes is too short")
    ledger_id, entry_id = _ids.unpack_from(frame, ENTRY_AT)
    return Add(
        ledger_id,
        entry_id,
        frame[4:ENTRY_AT],
        frame[ENTRY_AT:],
        flags & RECOVERY_ADD != 0,
        flags & HIGH_PRIORITY != 0,
    )


def _parse_key(head: int, frame: bytes, at: int) -> bytes | None:
    if not head & DO_FENCING or head >> 24 < VERSION:
        return None
    if len(frame) < at + KEY_BYTES:
        raise WireError("a fencing read without a master key")
    return frame[at : at + KEY_BYTES]


# -- responses ------------------------------------------------------------------------------------


def pack_response(head: int, response: BookieMessage) -> bytes:
    """The body of the frame that answers the request with this header."""
    head &= 0xFFFF0000
    match response:
        case Added(status, ledger_id, entry_id):
            return _response.pack(head, CODES[status], ledger_id, entry_id)
        case ReadEntry(status, ledger_id, entry_id, entry):
            begin = _response.pack(head, CODES[status], ledger_id, entry_id)
            return begin + entry if entry is not None and status is Status.OK else begin
        case ReadEntries():
            return b"".join(pack_entries(head, response))
        case Authenticate():
            return _pack_auth(head, response)
        case StatusOnly(status):
            return _response.pack(head, CODES[status], NOWHERE, NOWHERE)
        case _:
            raise WireError(f"version 2 has no {type(response).__name__}")


def pack_entries(head: int, response: ReadEntries) -> list[bytes | memoryview]:
    """The pieces of such a body: entries are large, and are not copied into one."""
    where = CODES[response.status], response.ledger_id, response.first
    pieces: list[bytes | memoryview] = [
        _response.pack(head & 0xFFFF0000, *where),
        _request_id.pack(response.request_id),
    ]
    for entry in response.entries:
        pieces += (_length.pack(len(entry)), entry)
    pieces += response.records
    return pieces


def parse_response(frame: bytes) -> BookieMessage:
    try:
        (head,) = _header.unpack_from(frame)
        if opcode_of(head) == AUTH:
            return _parse_auth(frame)
        _, code, ledger_id, entry_id = _response.unpack_from(frame)
        status = STATUSES.get(code, Status.IO_ERROR)
        match opcode_of(head):
            case 1:
                return Added(status, ledger_id, entry_id)
            case 2:
                entry = frame[_response.size :] if status is Status.OK else None
                return ReadEntry(status, ledger_id, entry_id, entry)
            case 7:
                (request_id,) = _request_id.unpack_from(frame, _response.size)
                entries = _parse_entries(frame, _response.size + _request_id.size)
                return ReadEntries(status, ledger_id, entry_id, request_id, entries)
            case other:
                raise WireError(f"a response with the opcode {other}")
    except struct.error as error:
        raise WireError(f"a response of {len(frame)} bytes is too short") from error


def _parse_entries(frame: bytes, at: int) -> tuple[bytes, ...]:
    found = []
    while at < len(frame):
        (size,) = _length.unpack_from(frame, at)
        at += _length.size + size
        if at > len(frame):
            raise WireError("the last entry of a batch is cut short")
        found.append(frame[at - size : at])
    return tuple(found)


def _pack_auth(head: int, message: Authenticate) -> bytes:
    body = AuthMessage(authPluginName=message.plugin, payload=message.payload)
    return _header.pack(head) + body.SerializeToString()


def _parse_auth(frame: bytes) -> Authenticate:
    try:
        found = AuthMessage.FromString(frame[_header.size :])
    except DecodeError as error:
        raise WireError("the message of an authentication makes no sense") from error
    return Authenticate(found.authPluginName, found.payload)
