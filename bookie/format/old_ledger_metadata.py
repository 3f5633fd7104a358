r"""Ledger metadata of older clients: versions 1 and 2 of the format. Pure.

Version 2 is protobuf's text format, as Apache's clients before 4.9 write it; version 1 is lines of
its own, from before 4.2 (`LedgerMetadataSerDe.java` of 4.18):

    write quorum \n ensemble size \n length \n
    first entry \t bookie \t bookie ... \n        for each segment
    last entry \t CLOSED                           if closed; -102 if in recovery

Invariant: what is packed in a version is parsed in it to the same metadata, as far as that version
has its fields: version 1 has neither an ack quorum nor a digest, a password, or properties.
"""

from __future__ import annotations

from typing import Final

from google.protobuf import text_format

from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted, Unsupported

CLOSED: Final = "CLOSED"
IN_RECOVERY: Final = -102


def parse_text(body: bytes) -> LedgerMetadata:
    """Metadata in version 2. `Unsupported` if it has a field without a name here, since writing it
    back would lose it.
    """
    try:
        return text_format.Parse(body.decode(), LedgerMetadata())
    except text_format.ParseError as error:
        if "has no field named" in str(error):
            raise Unsupported(f"ledger metadata has an unknown field: {error}") from error
        raise Corrupted(f"ledger metadata makes no sense: {error}") from error
    except UnicodeDecodeError as error:
        raise Corrupted("ledger metadata is not text") from error


def pack_text(metadata: LedgerMetadata) -> bytes:
    text: str = text_format.MessageToString(metadata)
    return text.encode()


def parse_lines(body: bytes) -> LedgerMetadata:
    """Metadata in version 1."""
    try:
        quorum, ensemble, length, *lines = body.decode().split("\n")
        found = LedgerMetadata(
            quorumSize=int(quorum),
            ackQuorumSize=int(quorum),
            ensembleSize=int(ensemble),
            length=int(length),
            lastEntryId=-1,
            state=LedgerMetadata.OPEN,
        )
        for line in lines:
            if line:
                _parse_line(found, line)
    except ValueError as error:  # UnicodeDecodeError is one as well
        raise Corrupted("ledger metadata of version 1 makes no sense") from error
    return found


def _parse_line(found: LedgerMetadata, line: str) -> None:
    number, *words = line.split("\t")
    if found.state != LedgerMetadata.OPEN or not words:
        raise ValueError(line)
    if words != [CLOSED]:
        found.segment.add(firstEntryId=int(number), ensembleMember=words)
    elif int(number) == IN_RECOVERY:
        found.state = LedgerMetadata.IN_RECOVERY
    else:
        found.state, found.lastEntryId = LedgerMetadata.CLOSED, int(number)


def pack_lines(metadata: LedgerMetadata) -> bytes:
    head = (metadata.quorumSize, metadata.ensembleSize, metadata.length)
    parts = [f"{number}\n" for number in head]
    parts += [
        "\t".join([str(segment.firstEntryId), *segment.ensembleMember]) + "\n"
        for segment in metadata.segment
    ]
    if metadata.state == LedgerMetadata.CLOSED:
        parts.append(f"{metadata.lastEntryId}\t{CLOSED}")
    elif metadata.state == LedgerMetadata.IN_RECOVERY:
        parts.append(f"{IN_RECOVERY}\t{CLOSED}")
    return "".join(parts).encode()
