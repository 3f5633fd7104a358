"""Reassembles a large message from its chunks (PIP-37), searching backwards from the last one.

The chunks are entries of their own, in order, among entries of other producers, and rarely far
apart. Pulsar's clients reassemble them; readers of other protocols get the message whole.

Invariant: no more is read or held than the limits allow; a message with a missing chunk is not
returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import trio

from magnetar.core.entry.form import Chunk
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Chain, Position
from magnetar.core.ledger.read.readable_log import ReadableLog

LOOKED_AT_MAX: Final = 20_000
"""Entries searched before the last chunk."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest message that is reassembled."""
STEP_ENTRIES: Final = 64
STEP_BYTES: Final = 16 * 1024 * 1024
ON_THE_LOOP_BYTES: Final = 64 * 1024
"""Larger entries are decoded in a thread."""


async def records_at(ledger: ReadableLog, position: Position, sent: bytes) -> Sequence[Record]:
    """The messages of an entry in any form; the last chunk of a large message returns it whole."""
    form = form_of(sent)
    last = form.chunk(sent)
    earlier: Sequence[bytes] = ()
    if last is not None:
        found = await _before(ledger, position, last) if last.is_last else None
        if found is None:
            return ()
        earlier = found
    if len(sent) <= ON_THE_LOOP_BYTES:
        return form.records(sent, earlier)
    return await trio.to_thread.run_sync(form.records, sent, earlier)


async def _before(ledger: ReadableLog, position: Position, last: Chunk) -> list[bytes] | None:
    """The chunks of a large message before its last one, in order; None if one is missing."""
    found: dict[int, bytes] = {}
    entries_seen = 0
    for start, entries in _steps(ledger.chain, position):
        found = {**await _chunks(ledger, start, entries, last), **found}
        entries_seen += entries
        if len(found) == last.chunks - 1:
            return [found[number] for number in range(last.chunks - 1)]
        if entries_seen >= LOOKED_AT_MAX or sum(map(len, found.values())) > BYTES_MAX:
            break
    return None


def _steps(chain: Chain, position: Position) -> Iterator[tuple[Position, int]]:
    """Stretches of entries to search, backwards from `position`."""
    for segment in reversed(chain.segments):
        if segment.ledger_id > position[0]:
            continue
        own = segment.ledger_id == position[0]
        end = position[1] if own else chain.last_entry_of(segment) + 1
        while end > 0:
            start = max(end - STEP_ENTRIES, 0)
            yield (segment.ledger_id, start), end - start
            end = start


async def _chunks(
    ledger: ReadableLog, start: Position, entries: int, last: Chunk
) -> dict[int, bytes]:
    """Chunks of that message in a stretch of entries; of a chunk sent twice, the last."""
    found: dict[int, bytes] = {}
    first, end = start[1], start[1] + entries
    while first < end:
        part = await ledger.losses.read_round((start[0], first), end - first, STEP_BYTES)
        for place in range(len(part.payloads)):
            sent = part.sent(place)
            about = form_of(sent).chunk(sent)
            if about is None or about.uuid != last.uuid:
                continue
            if 0 <= about.chunk_id < last.chunk_id:
                found[about.chunk_id] = sent
        first = part.first_entry + len(part.payloads)
    return found
