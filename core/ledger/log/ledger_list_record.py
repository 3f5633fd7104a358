"""The list of a log's ledgers as it is stored: what the chain says, and what the log itself notes.

Other brokers' tools know the form; what only we mean is in properties, which they carry along.

Invariant: what is read from a list that was written here says the same as the chain it was written
from, whatever was in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import NOWHERE, START, Chain, Position, Segment
from magnetar.core.ledger.read.remaining_entries import REMAINING

NEXT_INDEX: Final = "magnetar.next-index"
"""Property of the whole log: the index its next entry gets, which outlives trimmed ledgers."""
BEGIN: Final = "magnetar.begin"
"""Likewise: where the log begins, if that is not its first entry: an index, and a position."""
MIXED: Final = "magnetar.mixed"
"""Likewise: the log has entries in other forms than Pulsar's."""
DOOMED: Final = "magnetar.doomed"
"""Likewise: ledgers that are not part of it, or not any more, and are to be deleted."""
FIRST_INDEX: Final = "magnetar.first-index"
"""Property of one ledger: the index of its first message."""
BEGUN: Final = "magnetar.begun"
"""Likewise: when it was begun."""


def encoded(
    chain: Chain,
    properties: dict[str, str],
    next_index: int,
    terminated: Position | None,
    doomed: Collection[int] = (),
) -> bytes:
    """The list to store; updates `properties`."""
    properties[NEXT_INDEX] = str(next_index)
    properties.pop(BEGIN, None)
    properties.pop(DOOMED, None)
    if doomed:
        properties[DOOMED] = " ".join(map(str, sorted(doomed)))
    if chain.begins_at != NOWHERE:
        properties[BEGIN] = " ".join(map(str, (chain.begins_at, *chain.start)))
    return formats.encode_managed_ledger(
        formats.ManagedLedgerInfo(
            ledgers=[_listed(segment) for segment in chain.segments],
            terminated=terminated,
            properties=properties,
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
    """The ledgers that are listed, and an index that is above all of theirs as far as they say."""
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
    """Bytes of payload in the ledgers of a stored list, as far as they have ended."""
    return sum(one.size for one in formats.decode_managed_ledger(stored).ledgers)


def doomed_of(properties: Mapping[str, str]) -> list[int]:
    """Ledgers that are to be deleted."""
    return [int(ledger_id) for ledger_id in properties.get(DOOMED, "").split()]


def beginning_of(properties: Mapping[str, str]) -> tuple[int, Position]:
    """The index and the position where the log begins, if that was moved."""
    text = properties.get(BEGIN)
    if text is None:
        return NOWHERE, START
    try:
        index, ledger_id, entry_id = map(int, text.split())
    except ValueError as error:
        raise Corrupted(f"a log does not begin at {text!r}") from error
    return index, (ledger_id, entry_id)
