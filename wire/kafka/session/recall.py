"""Which producers wrote a log, and how far they were: known again after a restart.

When a topic is put away, that is noted beside it; whoever writes it next reads the notes, and the
entries that came after them. After a crash there are old notes or none, and the end of the log is
read: as much as producers may have under way, many times over. Who only reads pays nothing.

Invariant: notes are of a position that was confirmed, and of everything up to it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from magnetar.core.cluster.owned import OwnedRecord, RecordState
from magnetar.core.entry import kafka_form
from magnetar.core.entry.kafka_batch import header_of
from magnetar.core.ledger.chain import START, Position
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.wire.kafka.producers import Known

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.logs import Log

NOTES: Final = "/magnetar/kafka/producers"
RECALLED_ENTRIES: Final = 20_000
RECALLED_BYTES: Final = 64 * 1024 * 1024
"""Of the end of a log, whichever is less."""
READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 4 * 1024 * 1024


class Notes(Struct, frozen=True, array_like=True):
    """As they are stored."""

    position: Position
    producers: list[Known]


_encode: Final = msgspec.msgpack.encode
_decode: Final = msgspec.msgpack.Decoder(Notes).decode


class Recall:
    """See the module's docstring."""

    __slots__ = ("_log", "_noted", "_now_ms", "_record")

    def __init__(self, metadata: MetadataStore, log: Log, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._log = log
        self._noted: Position = START
        path = f"{NOTES}/{log.topic.ledger.name}"
        self._record = OwnedRecord(metadata, path, bytes, bytes)

    async def claim(self) -> bytes | None:
        """Take the notes over: whoever wrote the log before writes none any more."""
        if self._record.state is RecordState.UNREAD:
            await self._record.claim()
        return self._record.value

    async def recall(self) -> None:
        """Know what was noted, and what came behind it."""
        ledger, chain = self._log.topic.ledger, self._log.topic.ledger.chain
        producers, now_ms = self._log.producers, self._now_ms()
        position = self._from_the_end()
        stored = await self.claim()
        if stored is not None:
            notes = _decode(zlib.decompress(stored))
            ours = any(one.ledger_id == notes.position[0] for one in chain.segments)
            if ours and notes.position <= chain.confirmed:
                producers.restore(notes.producers, now_ms)
                self._noted = notes.position
                position = max(position, chain.after(notes.position))
        while chain.has(position):
            part = await ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
            for place in range(len(part.payloads)):
                batch = kafka_form.batch_in(part.sent(place))
                if batch is not None:
                    producers.note(header_of(batch), part.header(place).first_index, now_ms)
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    def _from_the_end(self) -> Position:
        """So much before the end, or the beginning."""
        ledger, chain = self._log.topic.ledger, self._log.topic.ledger.chain
        left = RECALLED_ENTRIES
        if chain.entries:
            left = min(left, RECALLED_BYTES * chain.entries // max(ledger.size, 1) + 1)
        position = chain.confirmed
        for segment in reversed(chain.segments):
            entries = chain.last_entry_of(segment) + 1
            position = (segment.ledger_id, max(entries - left, 0))
            left -= entries
            if left <= 0:
                break
        return chain.normal(position)

    async def note(self) -> None:
        """How things stand, when nothing is on its way any more."""
        position = self._log.topic.ledger.chain.confirmed
        known = self._log.producers.known()
        if known and position != self._noted:
            notes = Notes(position, known)
            await self._record.write(zlib.compress(_encode(notes)))

    async def forget(self) -> None:
        """Nobody will want to know."""
        if self._record.state is RecordState.UNREAD:
            await self._record.load()
        await self._record.delete()
