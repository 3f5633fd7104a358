"""Entries of other protocols, converted into Kafka's batches.

Neighbours share a batch, since many entries hold a single message. Each message has its own offset.
An offset without a message (a chunk but the last, a marker, an unreadable entry) is a hole in the
batch, such as Kafka's log compaction leaves, which every client accepts.

A batch has no producer id, so the list of aborted transactions in a response cannot name what was
aborted in another protocol's transactions. For `read_committed` their messages are holes as well;
for `read_uncommitted` they are sent, as Kafka sends its own (docs/decisions/0025).

Invariant: batches cover each offset once, in order.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.core.entry.empty import EMPTY
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read import chunked_messages

log = logging.getLogger(__name__)

BATCH_BYTES_MAX: Final = 256 * 1024
"""Stored size of the entries in one batch; a larger entry has a batch of its own."""
RECORDS_PER_REST: Final = 300
"""Records between two checkpoints of the loop, about a millisecond."""


class Foreign:
    """The batch under construction."""

    __slots__ = ("_base", "_ledger", "_records", "_since_rest", "committed", "offsets", "size")

    def __init__(self, ledger: ManagedLedger) -> None:
        self.committed = False
        """Whether messages of aborted transactions are left out."""
        self._ledger = ledger
        self._records: list[Record] = []
        self._base = 0
        self.offsets = 0
        self.size = 0
        self._since_rest = 0

    @property
    def full(self) -> bool:
        return self.size >= BATCH_BYTES_MAX

    async def add(self, sent: bytes, position: Position, offset: int, count: int) -> None:
        """Add the messages of an entry, whose first offset is `offset`."""
        if not self.offsets:
            self._base = offset
        shift = offset - self._base
        try:
            if self.committed and self._is_aborted(sent, offset):
                sent = EMPTY
            for record in await chunked_messages.records_at(self._ledger, position, sent):
                self._records.append(record._replace(place=record.place + shift))
        except Corrupted as error:
            log.error("%s: offset %d is unreadable: %s", self._ledger.name, offset, error)
        self.offsets = shift + count
        self.size += len(sent)
        self._since_rest += count
        if self._since_rest >= RECORDS_PER_REST:
            self._since_rest = 0
            await trio.lowlevel.checkpoint()

    def _is_aborted(self, sent: bytes, offset: int) -> bool:
        transactions = self._ledger.transactions
        if not transactions.aborted:
            return False
        found = form_of(sent).transaction_mark(sent)
        return found is not None and transactions.hides(found.key, offset)

    def take(self) -> bytes:
        """Return the batch, and begin the next one."""
        batch = record_batch.batch_of(self._records, self._base, self.offsets)
        self._records, self.offsets, self.size = [], 0, 0
        return batch
