"""Answers of bookies opened: whether they are what was asked for, and the payloads. Pure.

Every digest is checked, here and nowhere else: bookies do not know them.

    response to a batch read   header (24) | request id (8) | [length (4) | entry] until the end

Invariant: what is returned was sealed by the ledger's writer as just these entries (only with the
digest DUMMY nothing but their ids is known).
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from magnetar.bookie.format import entries, records
from magnetar.bookie.format.digests import open_entry
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import Corrupted, WireError
from magnetar.core.native import quickest

RECORDS_AT: Final = 32
"""Where the entries of a batch begin."""
_batch = Layout(">Iiqqq").unpack_from
_unpack = quickest(records.unpack, "magnetar.bookie.format.compiled")


def open_records(ledger: ReadableLedger, first: int, data: bytes) -> tuple[list[bytes], str]:
    """The payloads of entries from `first` on, up to damage; and what is damaged, if anything is.

    `data` are entries, each behind its length.
    """
    if ledger.metadata.digestType == LedgerMetadata.CRC32C:
        return _open_run(ledger, first, data)
    payloads: list[bytes] = []
    at, end = 0, len(data)
    try:
        while at < end:
            after = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if after > end:
                raise Corrupted("the answer is cut short")
            entry_id = first + len(payloads)
            payloads.append(open_one(ledger, entry_id, data[at + 4 : after]))
            at = after
    except Corrupted as error:
        return payloads, str(error)
    return payloads, ""


def _open_run(ledger: ReadableLedger, first: int, data: bytes) -> tuple[list[bytes], str]:
    """The same for CRC32C, by the code that reads runs from disks."""
    if not data:
        return [], ""
    run = entries.run_in(data)
    if run is None or (run.ledger_id, run.first) != (ledger.ledger_id, first):
        return [], f"something else is where entry {ledger.ledger_id}:{first} should be"
    payloads = _unpack(run.blob, run.offsets, 0, run.count)
    if len(payloads) < run.count:
        return payloads, f"entry {run.ledger_id}:{first + len(payloads)} does not have its digest"
    if run.offsets[-1] < len(data):
        return payloads, f"something else follows entry {run.ledger_id}:{run.last}"
    return payloads, ""


def open_one(ledger: ReadableLedger, entry_id: int, entry: bytes) -> bytes:
    """The payload of one entry; `Corrupted` if it is not this entry, or not whole."""
    _, payload = open_entry(ledger.digest, ledger.ledger_id, entry_id, entry)
    return payload


def batch_in(frame: bytes) -> tuple[Status, int, bytes]:
    """The status, the request's id, and the entries of a response to a batch read."""
    if len(frame) < RECORDS_AT:
        raise WireError(f"a response to a batch read of {len(frame)} bytes is too short")
    _, code, _, _, request_id = _batch(frame)
    return version2.STATUSES.get(code, Status.IO_ERROR), request_id, frame[RECORDS_AT:]
