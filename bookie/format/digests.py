"""The digests that a ledger's client may choose, and what they cover. Pure.

An entry is 32 bytes of metadata, the digest of these and the payload, and the payload; an explicit
LAC is the ledger and the LAC, and the digest of both (`DigestManager.java` of BookKeeper 4.18). A
bookie stores both without looking at the digest, which only clients know how to check.

    CRC32C   4 bytes, as Pulsar's ledgers have it; `entries.py` is for runs of these
    CRC32    8 bytes, of which the first half is zero; the Java client's default
    HMAC    20 bytes, HMAC-SHA1 with a key made of the ledger's password; clients call it MAC
    DUMMY    none

Invariant: `open_entry(seal_entry(...))` is what was sealed; any other bytes are `Corrupted`, except
with DUMMY.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import count, repeat
from struct import Struct
from typing import Final, NamedTuple

from magnetar.bookie.format.entries import HEADER_BYTES, LENGTH_BYTES, DigestHeader, Run
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted

Digest = Callable[[bytes, bytes], bytes]
"""The digest of the metadata and the payload."""

DIGEST_TYPES: Final[Mapping[str, LedgerMetadata.DigestType]] = {
    "CRC32C": LedgerMetadata.CRC32C,
    "CRC32": LedgerMetadata.CRC32,
    "MAC": LedgerMetadata.HMAC,
    "DUMMY": LedgerMetadata.DUMMY,
}
"""By the names of `DigestType.java`, which differ from those in the metadata."""
DIGEST_BYTES_MAX: Final = 20

_header = Struct(">qqqq")
_lac = Struct(">qq")
_crc32c = Struct(">I").pack
_crc32 = Struct(">Q").pack


class DigestType(NamedTuple):
    """A ledger's digest, with its password."""

    size: int
    compute: Digest


def master_key(password: bytes) -> bytes:
    """What a client shows to a bookie: it never sees the password
    (`DigestManager.generateMasterKey`).
    """
    return _keyed(b"ledger", password)


def digest_type(kind: LedgerMetadata.DigestType, password: bytes) -> DigestType:
    """The digest of a ledger with this type in its metadata."""
    if kind == LedgerMetadata.CRC32C:
        return DigestType(4, lambda head, body: _crc32c(crc32c(body, crc32c(head))))
    if kind == LedgerMetadata.CRC32:
        return DigestType(8, lambda head, body: _crc32(zlib.crc32(body, zlib.crc32(head))))
    if kind == LedgerMetadata.HMAC:
        key = _keyed(b"mac", password)
        return DigestType(20, lambda head, body: hmac.digest(key, head + body, "sha1"))
    return DigestType(0, lambda head, body: b"")


def _keyed(purpose: bytes, password: bytes) -> bytes:
    return hashlib.sha1(purpose + password, usedforsecurity=False).digest()


def seal_entry(digest: DigestType, header: DigestHeader, payload: bytes) -> bytes:
    """An entry as it travels and as it is stored."""
    head = _header.pack(header.ledger_id, header.entry_id, header.last_confirmed, header.length)
    return head + digest.compute(head, payload) + payload


def seal_run(
    digest: DigestType,
    begin: DigestHeader,
    payloads: Sequence[bytes],
    heads: Sequence[bytes] | None = None,
) -> Run:
    """Records of payloads, each behind its head, as `entries.seal` makes them with CRC32C. `begin`
    has the ids of the first, and the ledger's payload bytes before it.
    """
    records: list[bytes] = []
    offsets, length = [0], begin.length
    bodies = zip(count(begin.entry_id), heads or repeat(b"", len(payloads)), payloads)
    for entry_id, head, payload in bodies:
        length += len(head) + len(payload)
        header = DigestHeader(begin.ledger_id, entry_id, begin.last_confirmed, length)
        entry = seal_entry(digest, header, head + payload)
        records += (len(entry).to_bytes(LENGTH_BYTES, "big"), entry)
        offsets.append(offsets[-1] + LENGTH_BYTES + len(entry))
    return Run(begin.ledger_id, begin.entry_id, b"".join(records), array("I", offsets))


def open_entry(
    digest: DigestType, ledger_id: int, entry_id: int, entry: bytes
) -> tuple[DigestHeader, bytes]:
    """The metadata and the payload of an entry; `Corrupted` if it is not that entry, or not whole.

    The ids are compared as well: an intact entry of another place is as wrong as a damaged one.
    """
    body_at = HEADER_BYTES + digest.size
    if len(entry) < body_at:
        raise Corrupted(f"entry {ledger_id}:{entry_id} has {len(entry)} bytes")
    head, payload = entry[:HEADER_BYTES], entry[body_at:]
    if digest.compute(head, payload) != entry[HEADER_BYTES:body_at]:
        raise Corrupted(f"entry {ledger_id}:{entry_id} does not have its digest")
    header = DigestHeader(*_header.unpack(head))
    if (header.ledger_id, header.entry_id) != (ledger_id, entry_id):
        raise Corrupted(
            f"entry {ledger_id}:{entry_id} is entry {header.ledger_id}:{header.entry_id}"
        )
    return header, payload


def seal_lac(digest: DigestType, ledger_id: int, lac: int) -> bytes:
    """The packet of an explicit LAC."""
    head = _lac.pack(ledger_id, lac)
    return head + digest.compute(head, b"")


def open_lac(digest: DigestType, ledger_id: int, packet: bytes) -> int:
    """The LAC in a packet; `Corrupted` if it is another ledger's, or not whole."""
    if len(packet) != _lac.size + digest.size:
        raise Corrupted(f"the explicit LAC of ledger {ledger_id} has {len(packet)} bytes")
    head = packet[: _lac.size]
    if digest.compute(head, b"") != packet[_lac.size :]:
        raise Corrupted(f"the explicit LAC of ledger {ledger_id} does not have its digest")
    found, lac = _lac.unpack(head)
    if found != ledger_id:
        raise Corrupted(f"the explicit LAC of ledger {ledger_id} is that of ledger {found}")
    return int(lac)
