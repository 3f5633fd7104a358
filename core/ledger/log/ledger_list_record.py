"""The stored form of a log's list of ledgers: a ManagedLedgerInfo of Pulsar.

Other brokers' tools read it (MLDataFormats of Pulsar 4.2). What only we know is stored in
properties, which they preserve.

Invariant: a record that was written here decodes to the contents that it was encoded from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import NOWHERE, START, Position, Segment
from magnetar.core.ledger.log.remaining_entries import REMAINING

NEXT_INDEX: Final = "magnetar.next-index"
"""Property of the log: the index of its next entry, which outlives trimmed ledgers."""
BEGIN: Final = "magnetar.begin"
"""Property of the log: where it begins, if that is not its first entry: an index and a position."""
MIXED: Final = "magnetar.mixed"
"""Property of the log: it has entries in other forms than the native one."""
DOOMED: Final = "magnetar.doomed"
"""Property of the log: ledgers to delete, which are not, or no longer, part of it."""
COMPACTED: Final = "magnetar.compacted"
"""Property of the log: its compacted ledger, as `CompactedLedger.text`."""
FIRST_INDEX: Final = "magnetar.first-index"
"""Property of one ledger: the index of its first message."""
BEGUN: Final = "magnetar.begun"
"""Property of one ledger: when it was created."""


class ListRecord(Struct, frozen=True):
    """What one version of the record says."""

    segments: list[Segment]
    properties: Mapping[str, str]
    """Properties of the log, ours among them."""
    begins_at: int = NOWHERE
    start: Position = START
    terminated: Position | None = None
    doomed: frozenset[int] = frozenset()


def described(contents: ListRecord, next_index: int) -> ListRecord:
    """The same contents, with all that only we know in the properties."""
    properties = {**contents.properties, NEXT_INDEX: str(next_index)}
    properties.pop(BEGIN, None)
    properties.pop(DOOMED, None)
    if contents.doomed:
        properties[DOOMED] = " ".join(map(str, sorted(contents.doomed)))
    if contents.begins_at != NOWHERE:
        properties[BEGIN] = " ".join(map(str, (contents.begins_at, *contents.start)))
    return replace(contents, properties=properties)


def encoded(contents: ListRecord) -> bytes:
    """The record to store; `contents` are `described`."""
    return formats.encode_managed_ledger(
        formats.ManagedLedgerInfo(
            ledgers=[_listed(segment) for segment in contents.segments],
            terminated=contents.terminated,
            properties=dict(contents.properties),
        )
    )


def _listed(segment: Segment) -> formats.LedgerEntryInfo:
    properties = {**segment.others, FIRST_INDEX: str(segment.first_index)}
    if segment.begun_ms:
        properties[BEGUN] = str(segment.begun_ms)
    if segment.remaining is not None:
        properties[REMAINING] = segment.remaining.location
    return formats.LedgerEntryInfo(
        ledger_id=segment.ledger_id,
        entries=segment.entries if segment.closed_ms else 0,
        size=segment.size if segment.closed_ms else 0,
        closed_ms=segment.closed_ms,
        properties=properties,
        offload_context=segment.offload,
    )


def segments_of(info: formats.ManagedLedgerInfo) -> tuple[list[Segment], int]:
    """The listed ledgers, and an index above those of all their messages, as far as is known."""
    listed: list[Segment] = []
    index = 0
    for ledger in info.ledgers:
        index = int(ledger.properties.get(FIRST_INDEX, index))
        listed.append(
            Segment(
                ledger_id=ledger.ledger_id,
                first_index=index,
                entries=ledger.entries,
                size=ledger.size,
                closed_ms=ledger.closed_ms,
                others=ledger.properties,
                offload=ledger.offload_context,
                begun_ms=int(ledger.properties.get(BEGUN, 0)),
            )
        )
        index += ledger.entries
    return listed, index


def size_of(stored: bytes) -> int:
    """Bytes of payload in the closed ledgers of a stored list."""
    return sum(one.size for one in formats.decode_managed_ledger(stored).ledgers)


def doomed_of(properties: Mapping[str, str]) -> list[int]:
    """The ledgers to delete."""
    return [int(ledger_id) for ledger_id in properties.get(DOOMED, "").split()]


def beginning_of(properties: Mapping[str, str]) -> tuple[int, Position]:
    """The index and position where the log begins, if that is not its first entry."""
    text = properties.get(BEGIN)
    if text is None:
        return NOWHERE, START
    try:
        index, ledger_id, entry_id = map(int, text.split())
    except ValueError as error:
        raise Corrupted(f"a log does not begin at {text!r}") from error
    return index, (ledger_id, entry_id)


class CompactedLedger(Struct, frozen=True):
    """The second log of a topic: the last values of its keys (`core/ledger/compacted`)."""

    ledger_id: int
    """The ledger that holds it; -1 if no value is left."""
    entries: int
    """The number of entries of the log of which it holds something."""
    size: int
    """Their bytes."""
    horizon: Position
    """Everything in the log up to here is in it."""
    next_index: int
    """The index after the last message up to the horizon."""
    compacted_ms: int
    """When it was written."""

    @property
    def text(self) -> str:
        """As a property of the log."""
        last = (*self.horizon, self.next_index, self.compacted_ms)
        parts = (self.ledger_id, self.entries, self.size, *last)
        return " ".join(map(str, parts))


def compacted_of(properties: Mapping[str, str]) -> CompactedLedger | None:
    """The compacted ledger that a log has; None if it was never compacted in that way."""
    text = properties.get(COMPACTED)
    if text is None:
        return None
    try:
        ledger_id, entries, size, *last = map(int, text.split())
        last_ledger, last_entry, next_index, compacted_ms = last
    except ValueError as error:
        raise Corrupted(f"{text!r} is no compacted ledger") from error
    horizon = (last_ledger, last_entry)
    return CompactedLedger(ledger_id, entries, size, horizon, next_index, compacted_ms)
