"""Version 3 of the protocol: protobuf, as Apache's Java client speaks it by default. Pure.

A response has the operation and the transaction id of its request (`PacketProcessorBaseV3.java` of
4.18), and its status twice: in the frame and in the answer that it carries.

Invariant: what is packed here is parsed here to the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from magnetar.bookie.proto import requests_pb2 as pb
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BookieInfo,
    BookieMessage,
    EntryList,
    Forced,
    ForceLedger,
    GetBookieInfo,
    Lac,
    ListEntries,
    Read,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    Unanswerable,
    WriteLac,
    WroteLac,
)
from magnetar.core.kernel.errors import WireError

HIGH_PRIORITY: Final = 100
"""As Apache's client sends it (`PerChannelBookieClient.java`); any above 0 is high."""
DEFERRED_SYNC: Final = 1
"""A bit of `writeFlags` (`WriteFlag.java`)."""
TOTAL: Final = 1
FREE: Final = 2
"""Bits of `requested` (`GetBookieInfoRequest.Flags`)."""

CODES: Final[Mapping[Status, pb.StatusCode]] = {
    Status.OK: pb.EOK,
    Status.NO_LEDGER: pb.ENOLEDGER,
    Status.NO_ENTRY: pb.ENOENTRY,
    Status.BAD_REQUEST: pb.EBADREQ,
    Status.IO_ERROR: pb.EIO,
    Status.UNAUTHORIZED: pb.EUA,
    Status.BAD_VERSION: pb.EBADVERSION,
    Status.FENCED: pb.EFENCED,
    Status.READ_ONLY: pb.EREADONLY,
    Status.TOO_MANY_REQUESTS: pb.ETOOMANYREQUESTS,
    Status.UNKNOWN_LEDGER_STATE: pb.EUNKNOWNLEDGERSTATE,
}
STATUSES: Final = {int(code): status for status, code in CODES.items()}


Parsed = TypeVar("Parsed", pb.Request, pb.Response)


class Header(NamedTuple):
    """What a response repeats of its request."""

    operation: pb.OperationType
    txn_id: int


# -- requests -------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How a request travels: in which field, and from and to our message."""

    operation: pb.OperationType
    field: str
    fields: Callable[[Any], Any]
    """The protobuf message of ours."""
    message: Callable[[Any], BookieMessage]


def _add_fields(add: Add) -> pb.AddEntry:
    made = pb.AddEntry(
        ledgerId=add.ledger_id, entryId=add.entry_id, masterKey=add.master_key, body=add.entry
    )
    if add.deferred_sync:
        made.writeFlags = DEFERRED_SYNC
    if add.recovery:
        made.flag = pb.AddEntry.RECOVERY_ADD
    return made


def _add(found: pb.AddEntry) -> Add:
    return Add(
        found.ledgerId,
        found.entryId,
        found.masterKey,
        found.body,
        recovery=found.HasField("flag") and found.flag == pb.AddEntry.RECOVERY_ADD,
        deferred_sync=found.writeFlags & DEFERRED_SYNC != 0,
    )


def _read_fields(read: Read) -> pb.ReadEntry:
    made = pb.ReadEntry(
        ledgerId=read.ledger_id,
        entryId=read.entry_id,
        masterKey=read.master_key,
        previousLAC=read.previous_lac,
        timeOut=read.timeout_ms,
    )
    if read.fence:
        made.flag = pb.ReadEntry.FENCE_LEDGER
    elif read.piggyback:
        made.flag = pb.ReadEntry.ENTRY_PIGGYBACK
    return made


def _read(found: pb.ReadEntry) -> Read:
    flag = found.flag if found.HasField("flag") else None
    fence = flag == pb.ReadEntry.FENCE_LEDGER
    return Read(
        found.ledgerId,
        found.entryId,
        # Only a fence needs it, at once: a read may wait, with megabytes that nobody looks at.
        _optional(found, "masterKey") if fence else None,
        fence=fence,
        previous_lac=_optional(found, "previousLAC"),
        timeout_ms=_optional(found, "timeOut"),
        piggyback=flag == pb.ReadEntry.ENTRY_PIGGYBACK,
    )


def _write_lac_fields(request: WriteLac) -> pb.WriteLac:
    return pb.WriteLac(
        ledgerId=request.ledger_id,
        lac=request.lac,
        masterKey=request.master_key,
        body=request.packet,
    )


def _write_lac(found: pb.WriteLac) -> WriteLac:
    return WriteLac(found.ledgerId, found.lac, found.masterKey, found.body)


def _info_fields(request: GetBookieInfo) -> pb.GetBookieInfo:
    return pb.GetBookieInfo(requested=request.total * TOTAL | request.free * FREE)


def _get_info(found: pb.GetBookieInfo) -> GetBookieInfo:
    return GetBookieInfo(found.requested & TOTAL != 0, found.requested & FREE != 0)


def _auth_fields(auth: Authenticate) -> pb.AuthMessage:
    return pb.AuthMessage(authPluginName=auth.plugin, payload=auth.payload)


def _auth(found: pb.AuthMessage) -> Authenticate:
    return Authenticate(found.authPluginName, found.payload)


_FORMS: Final[Mapping[type[BookieMessage], _Form]] = {
    Read: _Form(pb.READ_ENTRY, "readRequest", _read_fields, _read),
    Add: _Form(pb.ADD_ENTRY, "addRequest", _add_fields, _add),
    Authenticate: _Form(pb.AUTH, "authRequest", _auth_fields, _auth),
    WriteLac: _Form(pb.WRITE_LAC, "writeLacRequest", _write_lac_fields, _write_lac),
    ReadLac: _Form(
        pb.READ_LAC,
        "readLacRequest",
        lambda asked: pb.ReadLac(ledgerId=asked.ledger_id),
        lambda found: ReadLac(found.ledgerId),
    ),
    GetBookieInfo: _Form(pb.GET_BOOKIE_INFO, "getBookieInfoRequest", _info_fields, _get_info),
    StartTls: _Form(pb.START_TLS, "startTLSRequest", lambda _: pb.StartTls(), lambda _: StartTls()),
    ForceLedger: _Form(
        pb.FORCE_LEDGER,
        "forceLedgerRequest",
        lambda asked: pb.ForceLedger(ledgerId=asked.ledger_id),
        lambda found: ForceLedger(found.ledgerId),
    ),
    ListEntries: _Form(
        pb.GET_LIST_OF_ENTRIES_OF_LEDGER,
        "getListOfEntriesOfLedgerRequest",
        lambda asked: pb.GetListOfEntries(ledgerId=asked.ledger_id),
        lambda found: ListEntries(found.ledgerId),
    ),
}
_BY_OPERATION: Final = {form.operation: form for form in _FORMS.values()}


def pack_request(txn_id: int, request: BookieMessage) -> bytes:
    """The frame's body; `WireError` for a request that version 3 does not have."""
    form = _FORMS.get(type(request))
    if form is None:
        raise WireError(f"version 3 has no {type(request).__name__}")
    made = pb.Request()
    made.header.version = pb.VERSION_THREE
    made.header.operation, made.header.txnId = form.operation, txn_id
    if isinstance(request, Add | Read) and request.high_priority:
        made.header.priority = HIGH_PRIORITY
    getattr(made, form.field).CopyFrom(form.fields(request))
    return made.SerializeToString()


def parse_request(frame: bytes) -> tuple[Header, BookieMessage]:
    """The header, for the response, and the request.

    `WireError` if this is not version 3 at all, as with an operation that has no number here: from
    then on Apache's bookie takes the connection for one of version 2
    (`BookieProtoEncoding.RequestDecoder`).
    """
    found = _parse(pb.Request, frame)
    header = Header(found.header.operation, found.header.txnId)
    if found.header.version != pb.VERSION_THREE:
        return header, Unanswerable(Status.BAD_VERSION)
    form = _BY_OPERATION.get(header.operation)
    if form is None or not found.HasField(form.field):
        return header, Unanswerable(Status.BAD_REQUEST)
    request = form.message(getattr(found, form.field))
    if found.header.priority and isinstance(request, Add | Read):
        request = msgspec.structs.replace(request, high_priority=True)
    return header, request


def _parse(kind: type[Parsed], frame: bytes) -> Parsed:
    try:
        found = kind.FromString(frame)
    except DecodeError as error:
        raise WireError("a frame of version 3 makes no sense") from error
    if not found.IsInitialized():  # upb parses what lacks a required field
        raise WireError("a frame of version 3 lacks a field")
    return found


# -- responses ------------------------------------------------------------------------------------


def pack_response(header: Header, response: BookieMessage) -> bytes:
    """The body of the frame that answers the request with this header."""
    made = pb.Response()
    made.header.version = pb.VERSION_THREE
    made.header.operation, made.header.txnId = header
    made.status = CODES[getattr(response, "status", Status.OK)]  # Authenticate has none
    if not isinstance(response, StatusOnly):
        pack = _PACKERS.get(type(response))
        if pack is None:
            raise WireError(f"version 3 has no {type(response).__name__}")
        field, answer = pack(response)
        getattr(made, field).CopyFrom(answer)
    return made.SerializeToString()


def _pack_added(response: Added) -> tuple[str, Any]:
    status, ledger_id = CODES[response.status], response.ledger_id
    answer = pb.AddAnswer(status=status, ledgerId=ledger_id, entryId=response.entry_id)
    return "addResponse", answer


def _pack_read(response: ReadEntry) -> tuple[str, Any]:
    return "readResponse", pb.ReadAnswer(
        status=CODES[response.status],
        ledgerId=response.ledger_id,
        entryId=response.entry_id,
        body=response.entry,
        maxLAC=response.lac,
        lacUpdateTimestamp=response.lac_updated_ms,
    )


def _pack_lac(response: Lac) -> tuple[str, Any]:
    return "readLacResponse", pb.LacAnswer(
        status=CODES[response.status],
        ledgerId=response.ledger_id,
        lacBody=response.packet,
        lastEntryBody=response.last_entry,
    )


def _pack_info(response: BookieInfo) -> tuple[str, Any]:
    status, total, free = CODES[response.status], response.total, response.free
    answer = pb.InfoAnswer(status=status, totalDiskCapacity=total, freeDiskSpace=free)
    return "getBookieInfoResponse", answer


def _pack_list(response: EntryList) -> tuple[str, Any]:
    return "getListOfEntriesOfLedgerResponse", pb.ListAnswer(
        status=CODES[response.status],
        ledgerId=response.ledger_id,
        availabilityOfEntriesOfLedger=response.availability,
    )


def _ledger_answer(response: WroteLac | Forced) -> pb.LedgerAnswer:
    return pb.LedgerAnswer(status=CODES[response.status], ledgerId=response.ledger_id)


_PACKERS: Final[Mapping[type[BookieMessage], Callable[[Any], tuple[str, Any]]]] = {
    Added: _pack_added,
    ReadEntry: _pack_read,
    Authenticate: lambda response: ("authResponse", _auth_fields(response)),
    WroteLac: lambda response: ("writeLacResponse", _ledger_answer(response)),
    Lac: _pack_lac,
    BookieInfo: _pack_info,
    TlsStarted: lambda _: ("startTLSResponse", pb.StartTls()),
    Forced: lambda response: ("forceLedgerResponse", _ledger_answer(response)),
    EntryList: _pack_list,
}


def parse_response(frame: bytes) -> tuple[int, BookieMessage]:
    """The transaction id of the request, and the response."""
    found = _parse(pb.Response, frame)
    for field, message in _PARSERS.items():
        if found.HasField(field):
            return found.header.txnId, message(getattr(found, field), STATUSES[found.status])
    return found.header.txnId, StatusOnly(STATUSES[found.status])


def _parse_read(read: pb.ReadAnswer, _: Status) -> ReadEntry:
    return ReadEntry(
        STATUSES[read.status],
        read.ledgerId,
        read.entryId,
        _optional(read, "body"),
        _optional(read, "maxLAC"),
        _optional(read, "lacUpdateTimestamp"),
    )


def _parse_added(added: pb.AddAnswer, _: Status) -> Added:
    return Added(STATUSES[added.status], added.ledgerId, added.entryId)


def _parse_lac(lac: pb.LacAnswer, _: Status) -> Lac:
    packet, last_entry = _optional(lac, "lacBody"), _optional(lac, "lastEntryBody")
    return Lac(STATUSES[lac.status], lac.ledgerId, packet, last_entry)


def _parse_info(info: pb.InfoAnswer, _: Status) -> BookieInfo:
    total, free = _optional(info, "totalDiskCapacity"), _optional(info, "freeDiskSpace")
    return BookieInfo(STATUSES[info.status], total, free)


def _parse_list(listed: pb.ListAnswer, _: Status) -> EntryList:
    availability = _optional(listed, "availabilityOfEntriesOfLedger")
    return EntryList(STATUSES[listed.status], listed.ledgerId, availability)


_PARSERS: Final[Mapping[str, Callable[[Any, Status], BookieMessage]]] = {
    "addResponse": _parse_added,
    "readResponse": _parse_read,
    "authResponse": lambda found, _: _auth(found),
    "writeLacResponse": lambda found, _: WroteLac(STATUSES[found.status], found.ledgerId),
    "readLacResponse": _parse_lac,
    "getBookieInfoResponse": _parse_info,
    "startTLSResponse": lambda _, status: TlsStarted(status),
    "forceLedgerResponse": lambda found, _: Forced(STATUSES[found.status], found.ledgerId),
    "getListOfEntriesOfLedgerResponse": _parse_list,
}


def _optional(found: Any, name: str) -> Any:
    return getattr(found, name) if found.HasField(name) else None
