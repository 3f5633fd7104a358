"""A bookie's row of a ledger in the ledgers index, as Apache stores it. Pure.

Key: 8 bytes of ledger id. Value: protobuf `LedgerData` (`DbLedgerStorageDataFormats.proto`, written
by `LedgerMetadataIndex.java` of 4.18). One row of ours is no ledger's: it holds the mark up to
which the index covers the journal (`docs/decisions/0015-indexes-say-how-far-they-reach.md`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.proto.storage_pb2 import LedgerData
from magnetar.core.kernel.errors import Corrupted

MARK_LEDGER: Final = -0x6D61726B
LEDGER_ID_MAX: Final = 2**63 - 1

_key = Struct(">q")
key = _key.pack


class LedgerRow(msgspec.Struct, frozen=True):
    """The master key that writers must present, whether the ledger is fenced, and what else a
    bookie has to know of it.
    """

    master_key: bytes
    fenced: bool
    explicit_lac: bytes = b""
    """The last explicit LAC, as its client packed it; empty if there is none."""
    limbo: bool = False
    """Whether entries may be missing that were acknowledged (BP-46)."""
    other_digest: bool = False
    """Whether its entries have another digest than CRC32C. Not Apache's: a bookie of theirs never
    looks at digests, while ours judges by them what a disk has kept (`format/digests.py`)."""


def ledger_id_of(row_key: bytes) -> int:
    """The ledger id of a key; negative for Apache's own flags and for the mark."""
    return int(_key.unpack(row_key)[0])


def encode_row(row: LedgerRow) -> bytes:
    data = LedgerData(exists=True, fenced=row.fenced, masterKey=row.master_key)
    if row.explicit_lac:
        data.explicitLac = row.explicit_lac
    if row.limbo:
        data.limbo = True
    if row.other_digest:
        data.otherDigest = True
    return data.SerializeToString()


def decode_row(value: bytes) -> LedgerRow:
    try:
        data = LedgerData.FromString(value)
    except DecodeError as error:
        raise Corrupted("a row of the ledgers index makes no sense") from error
    return LedgerRow(data.masterKey, data.fenced, data.explicitLac, data.limbo, data.otherDigest)


def encode_mark_row(mark: Mark) -> bytes:
    """The value at `MARK_LEDGER`; `decode_row` gives the mark as the master key."""
    return LedgerData(exists=False, fenced=False, masterKey=mark.encode()).SerializeToString()
