"""A large message that came in several entries, put together from its last one backwards.

Its parts stand before the last one in order, among other entries, and rarely far away.

Invariant: no more is looked at, and no more is kept, than the limits say; a message that is not
found whole is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.entry import crossing
from magnetar.core.entry.pulsar_messages import PulsarMessage
from magnetar.core.entry.pulsar_metadata import Chunk, chunk
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Chain, Position

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger

LOOKED_AT_MAX: Final = 20_000
"""Entries before the last part."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""Of one message."""
STEP_ENTRIES: Final = 64
STEP_BYTES: Final = 16 * 1024 * 1024
ON_THE_LOOP_BYTES: Final = 64 * 1024
"""Larger entries are taken apart in a thread."""


async def records_at(ledger: ManagedLedger, position: Position, sent: bytes) -> Sequence[Record]:
    """What is in an entry, whoever sent it; of a large message in its last part, whole."""
    part = chunk(sent)
    if part is None:
        if len(sent) <= ON_THE_LOOP_BYTES:
            return crossing.to_records(sent)
        return await trio.to_thread.run_sync(crossing.to_records, sent)
    if part.chunk_id != part.chunks - 1:
        return ()
    message = await joined(ledger, position, sent)
    return message.records() if message is not None else ()


async def joined(ledger: ManagedLedger, position: Position, last: bytes) -> PulsarMessage | None:
    """The message whose last part is `last`, at `position`; None if it is not whole."""
    about = chunk(last)
    message = PulsarMessage(last)
    assert about is not None, "only parts are joined"
    parts: dict[int, bytes] = {about.chunk_id: message.payload}
    looked_at = 0
    for start, entries in _before(ledger.chain, position):
        found = await _parts(ledger, start, entries, about)
        parts = {**found, **parts}
        looked_at += entries
        if len(parts) == about.chunks:
            message.payload = b"".join(parts[number] for number in range(about.chunks))
            return message
        if looked_at >= LOOKED_AT_MAX or sum(map(len, parts.values())) > BYTES_MAX:
            break
    return None


def _before(chain: Chain, position: Position) -> Iterator[tuple[Position, int]]:
    """Where to look, in steps, backwards."""
    for segment in reversed(chain.segments):
        if segment.ledger_id > position[0]:
            continue
        own = segment.ledger_id == position[0]
        end = position[1] if own else chain.last_entry_of(segment) + 1
        while end > 0:
            start = max(end - STEP_ENTRIES, 0)
            yield (segment.ledger_id, start), end - start
            end = start


async def _parts(
    ledger: ManagedLedger, start: Position, entries: int, wanted: Chunk
) -> dict[int, bytes]:
    """Parts of that message in a stretch of entries; of one that was sent again the last counts."""
    found: dict[int, bytes] = {}
    first, end = start[1], start[1] + entries
    while first < end:
        part = await ledger.losses.read_round((start[0], first), end - first, STEP_BYTES)
        for place in range(len(part.payloads)):
            sent = part.sent(place)
            about = chunk(sent)
            if about is not None and about.uuid == wanted.uuid and about.chunk_id >= 0:
                found[about.chunk_id] = PulsarMessage(sent).payload
        first = part.first_entry + len(part.payloads)
    return {number: payload for number, payload in found.items() if number < wanted.chunks - 1}
