r"""A ledger's metadata in the metadata store: Apache's bytes at Apache's paths. Pure.

    "BookieMetadataFormatVersion\t3\n" | varint length | protobuf LedgerMetadata

Versions 2 and 1 are in `old_ledger_metadata.py`.

Invariant: metadata that is decoded, changed and encoded again keeps its version, since an older
client may have to read it, and the fields that we do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from google.protobuf.message import DecodeError

from magnetar.bookie.format import old_ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted, Unsupported
from magnetar.core.kernel.varints import varint
from magnetar.core.ports.ledger_store import LedgerInfo

ROOT: Final = "/ledgers"
COUNTER: Final = f"{ROOT}/idgen/ID"
INSTANCE_ID: Final = f"{ROOT}/INSTANCEID"
LAYOUT: Final = f"{ROOT}/LAYOUT"
LAYOUT_VALUE: Final = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
COOKIES: Final = f"{ROOT}/cookies"
MAGIC: Final = b"BookieMetadataFormatVersion\t"
VERSION: Final = 3
"""What new ledgers get: binary protobuf, since BookKeeper 4.9; 2 is protobuf's text format, and 1
plain text (`LedgerMetadataSerDe.java` of 4.18).
"""
SHORT_ID_MAX: Final = 2**31 - 2

OPEN: Final = LedgerMetadata.OPEN
IN_RECOVERY: Final = LedgerMetadata.IN_RECOVERY
CLOSED: Final = LedgerMetadata.CLOSED
OWNER: Final = "pulsar/managed-ledger"
"""Pulsar's property of a ledger: the managed ledger that it belongs to."""


def path_of(ledger_id: int) -> str:
    """The path of a ledger: split 2-4-4 for ids of 31 bits, 3-4-4-4-4 beyond
    (`StringUtils.getHybridHierarchicalLedgerPath` of 4.18).
    """
    if ledger_id <= SHORT_ID_MAX:
        text = f"{ledger_id:010d}"
        return f"{ROOT}/{text[:2]}/{text[2:6]}/L{text[6:]}"
    text = f"{ledger_id:019d}"
    return f"{ROOT}/{text[:3]}/{text[3:7]}/{text[7:11]}/{text[11:15]}/L{text[15:]}"


def id_of(path: str) -> int | None:
    """The ledger whose metadata is at a path; None if it is no ledger's path."""
    digits = path.removeprefix(f"{ROOT}/").replace("/L", "/", 1).replace("/", "")
    if not digits.isdigit() or len(digits) not in (10, 19):
        return None
    return int(digits) if path_of(int(digits)) == path else None


def leads_to_ledgers(name: str) -> bool:
    """Whether a node below the root may be a level of ledgers' paths."""
    return name.isdigit() and 2 <= len(name) <= 4


def fresh(
    ensemble: tuple[str, ...],
    quorums: tuple[int, int],
    properties: Mapping[str, bytes],
    created_ms: int,
    token: int,
) -> LedgerMetadata:
    """Metadata of a new, open ledger; `quorums` are write and ack quorum."""
    metadata = LedgerMetadata(
        quorumSize=quorums[0],
        ackQuorumSize=quorums[1],
        ensembleSize=len(ensemble),
        length=0,
        lastEntryId=-1,
        state=OPEN,
        digestType=LedgerMetadata.CRC32C,
        password=b"",
        ctime=created_ms,
        # Tells a retried create of ours from another's ledger; only version 3 has it
        # (LedgerMetadataSerDe.java).
        cToken=token,
    )
    metadata.segment.add(ensembleMember=ensemble, firstEntryId=0)
    for key, value in properties.items():
        metadata.customMetadata.add(key=key, value=value)
    return metadata


def encode(metadata: LedgerMetadata, version: int = VERSION) -> bytes:
    return MAGIC + b"%d\n" % version + _PACK[version](metadata)


def decode(data: bytes) -> tuple[LedgerMetadata, int]:
    """The metadata, and the version of its format."""
    if not data.startswith(MAGIC):
        raise Corrupted("ledger metadata does not begin as it should")
    version, _, rest = data[len(MAGIC) :].partition(b"\n")
    if version not in (b"1", b"2", b"3"):
        raise Unsupported(f"ledger metadata of version {version[:10].decode(errors='replace')}")
    return _PARSE[int(version)](rest), int(version)


def decode_of(ledger_id: int, data: bytes) -> tuple[LedgerMetadata, int]:
    """The same; the error names the ledger."""
    try:
        return decode(data)
    except (Corrupted, Unsupported) as error:
        raise type(error)(f"metadata of ledger {ledger_id}: {error}") from error


def _pack_binary(metadata: LedgerMetadata) -> bytes:
    body = metadata.SerializeToString()
    return varint(len(body)) + body


def _parse_binary(rest: bytes) -> LedgerMetadata:
    size, start = _read_varint(rest)
    if start + size != len(rest):
        raise Corrupted("ledger metadata is cut short")
    try:
        return LedgerMetadata.FromString(rest[start:])
    except DecodeError as error:
        raise Corrupted("ledger metadata makes no sense") from error


def owner(metadata: LedgerMetadata) -> str:
    """The managed ledger that a ledger belongs to, for logs."""
    for item in metadata.customMetadata:
        if item.key == OWNER:
            return item.value.decode(errors="replace")
    return "nobody known"


def ack_quorum(metadata: LedgerMetadata) -> int:
    """Of a ledger; one that does not say it is from before there was one, and waits for all."""
    if metadata.HasField("ackQuorumSize"):
        return metadata.ackQuorumSize
    return metadata.quorumSize


def info(ledger_id: int, metadata: LedgerMetadata) -> LedgerInfo:
    return LedgerInfo(
        ledger_id=ledger_id,
        closed=metadata.state == CLOSED,
        last_entry_id=metadata.lastEntryId,
        length=metadata.length,
        properties={item.key: item.value for item in metadata.customMetadata},
    )


def _read_varint(data: bytes) -> tuple[int, int]:
    value = shift = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    raise Corrupted("ledger metadata is cut short")


_PACK: Final[Mapping[int, Callable[[LedgerMetadata], bytes]]] = {
    1: old_ledger_metadata.pack_lines,
    2: old_ledger_metadata.pack_text,
    3: _pack_binary,
}
_PARSE: Final[Mapping[int, Callable[[bytes], LedgerMetadata]]] = {
    1: old_ledger_metadata.parse_lines,
    2: old_ledger_metadata.parse_text,
    3: _parse_binary,
}
