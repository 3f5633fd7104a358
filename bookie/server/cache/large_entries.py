"""Large entries from an entry log, as separate payloads with checked digests. Pure.

Checking and copying is most of the cost of reading large entries. The reading thread does it while
they are in the processor's cache, and a later read returns them as they are. Small entries stay in
their run, where they need no object each.

Invariant: the digest of every payload was right.
"""

from __future__ import annotations

from typing import Final

import msgspec

from magnetar.bookie.format.entries import Run

LARGE_BYTES: Final = 16 * 1024
"""The mean size of entries from which on a run is split."""
OBJECT_BYTES: Final = 50


class LargeEntries(msgspec.Struct, frozen=True, gc=False):
    """Payloads of one ledger with consecutive ids, at least one."""

    ledger_id: int
    first: int
    payloads: tuple[bytes, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.payloads) - 1

    @property
    def memory_bytes(self) -> int:
        return sum(map(len, self.payloads)) + OBJECT_BYTES * len(self.payloads) + 200

    def payload_bytes(self, entry_id: int) -> int:
        """The size of one entry's payload."""
        return len(self.payloads[entry_id - self.first])

    def checked_payloads(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Entries from `first` on, as far as `last` and `bytes_max` allow; at least one."""
        found: list[bytes] = []
        for payload in self.payloads[first - self.first : last - self.first + 1]:
            bytes_max -= len(payload)
            if bytes_max < 0 and found:
                break
            found.append(payload)
        return found


def split_large(run: Run) -> Run | LargeEntries:
    """Split a run if its entries are large; `Corrupted` if the first has a wrong digest."""
    if len(run.blob) < LARGE_BYTES * run.count:
        return run
    found = run.checked_payloads(run.first, run.last, len(run.blob))
    return LargeEntries(run.ledger_id, run.first, tuple(found))
