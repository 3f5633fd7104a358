"""The entries of one batched read, gathered in pieces.

Entries lie together in memory as the response has them: each behind its length. So a batch is a few
slices, whatever the number of its entries.

The first entry is returned even if it is too large, others only if they fit; a later entry that is
missing or damaged ends the batch (`BatchedReadEntryProcessor.java` of BookKeeper 4.18).
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.rpc.messages import BatchRead, ReadEntries, Status
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.core.kernel.errors import BrokerError

BATCH_HEAD_BYTES: Final = 24 + 8 + 4
"""Counted against the size of a batch before its entries."""
ENTRY_HEAD_BYTES: Final = 4
"""The length of each entry."""
COUNT_MAX: Final = 2**31 - 1
AHEAD_PART: Final = 8
"""So much of an entry is read beyond what entries usually take, since they are not all alike."""


class Batch:
    """See the module's docstring."""

    __slots__ = ("bytes_left", "count_left", "last_bytes", "next", "pieces", "request")

    def __init__(self, request: BatchRead, size_max: int, usual_bytes: int = 1024) -> None:
        """`usual_bytes` is about the size of an entry."""
        self.request = request
        self.next = request.first
        self.count_left = request.count_max if request.count_max > 0 else COUNT_MAX
        self.bytes_left = max(min(request.bytes_max, size_max) - BATCH_HEAD_BYTES, 1)
        self.last_bytes = usual_bytes
        """The mean size of the last entries."""
        self.pieces: list[bytes | memoryview] = []

    def _add(self, records: bytes | memoryview, count: int) -> None:
        self.pieces.append(records)
        self._count(count, len(records))

    def _add_entry(self, entry: bytes) -> None:
        """One that may be large: it is not copied behind its length."""
        self.pieces += (len(entry).to_bytes(ENTRY_HEAD_BYTES, "big"), entry)
        self._count(1, ENTRY_HEAD_BYTES + len(entry))

    def _count(self, count: int, size: int) -> None:
        self.next += count
        self.count_left -= count
        self.bytes_left -= size
        self.last_bytes = size // count

    def gather(self, ledgers: ServedLedgers) -> bool:
        """Add entries from memory; False if the next one is not there. Plain call."""
        ledger_id = self.request.ledger_id
        while self.count_left and self.bytes_left > 0:
            found = ledgers.records_at_once(ledger_id, self.next, self.count_left, self.bytes_left)
            if found is None:
                return bool(self.pieces) and self.is_nearly_full
            records, count = found
            if count == 0:
                if self.pieces:
                    return True
                entry = ledgers.entry_at_once(ledger_id, self.next)
                assert entry is not None, "it was there a moment ago"
                self._add_entry(entry)  # the first is returned whatever its size
            else:
                self._add(records, count)
        return True

    async def read(self, ledgers: ServedLedgers) -> ReadEntries:
        """The whole response, from memory and disk."""
        ledger_id = self.request.ledger_id
        ledgers.known(ledger_id)
        while not self.gather(ledgers):
            try:
                records, count = await ledgers.records(
                    ledger_id, self.next, self.count_left, self.bytes_left, self._ahead_bytes
                )
            except BrokerError:
                if not self.pieces:
                    raise
                break  # a read that begins there reports it
            if count:
                self._add(records, count)
            elif self.pieces:
                break
            else:  # the first is returned whatever its size
                self._add_entry(await ledgers.entry(ledger_id, self.next))
        return self.response()

    @property
    def is_nearly_full(self) -> bool:
        """Whether another entry as large as the last ones would not fit."""
        return self.bytes_left < self.last_bytes

    @property
    def _ahead_bytes(self) -> int:
        """What is read of the disk at once: an entry that is cut is read again."""
        usual = self.count_left * self.last_bytes + self.last_bytes // AHEAD_PART
        return min(self.bytes_left, usual)

    def response(self) -> ReadEntries:
        request = self.request
        return ReadEntries(
            Status.OK, request.ledger_id, request.first, request.request_id, (), self.pieces
        )
