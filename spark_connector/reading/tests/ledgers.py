"""Ledgers in memory, for tests: as they are stored, and what a server says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from magnetar.bookie.reading.range_read import Entries
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, LedgerNotFound, StorageFailed
from magnetar.core.ledger.log.remaining_entries import RemainingEntries, encoded
from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, ReadingPlan

LOG = "persistent://public/default/t"
DAMAGED = b"damaged"
UNREACHED = b"unreached"


class StoredInMemory:
    """One ledger; it can be opened again."""

    def __init__(self, entries: Mapping[int, bytes]) -> None:
        self.entries = entries

    def read(self, first: int, last: int) -> Iterator[Entries]:
        for number in range(first, last + 1):
            if number not in self.entries:
                raise EntryNotFound(f"entry {number} is nowhere")
            if self.entries[number] == DAMAGED:
                raise Corrupted(f"entry {number} is rotten")
            if self.entries[number] == UNREACHED:
                raise StorageFailed("no bookie answers")
            yield Entries(number, [self.entries[number]])

    def __enter__(self) -> StoredInMemory:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


class MemoryDirectory:
    """The ledgers of one log, as a `LedgerDirectory`."""

    is_server = False

    def __init__(self, *ledgers: list[bytes]) -> None:
        """Ledgers 10, 11, ... with these entries; the last one is open."""
        self.stored = {
            10 + number: dict(enumerate(entries)) for number, entries in enumerate(ledgers)
        }
        self.planned = list(self.ledgers(*map(len, ledgers)))
        self.copied: dict[int, dict[int, bytes]] = {}
        self.first_index = 0
        self.questions = 0

    @staticmethod
    def ledgers(*sizes: int) -> Iterator[PlannedLedger]:
        """Each entry is one message."""
        for number, size in enumerate(sizes):
            yield PlannedLedger(10 + number, sum(sizes[:number]), size, size)

    def opened(self, _log: str, ledger_id: int) -> StoredInMemory:
        if ledger_id not in self.stored:
            raise LedgerNotFound(f"there is no ledger {ledger_id} in the plan")
        return StoredInMemory(self.stored[ledger_id])

    def plan(self, log: str) -> ReadingPlan | None:
        assert log == LOG
        self.questions += 1
        return self.now

    @property
    def now(self) -> ReadingPlan:
        last = self.planned[-1]
        end = Place(last.id, last.entries, last.first_index + last.entries)
        first = Place(self.planned[0].id, 0, self.first_index)
        return ReadingPlan(first, end, end, self.planned, [])

    def renew(self, log: str, ledger_id: int) -> bool:
        """Of ledgers that are copied to other bookies, nobody else knows of those."""
        assert log == LOG
        if ledger_id not in self.copied:
            return False
        self.stored[ledger_id] = self.copied.pop(ledger_id)
        return True

    def has_ticket(self, ledger_id: int) -> bool:
        return False

    def compact(self, ledger_id: int, stored_in: int, ids: list[int], begin: int = 3) -> None:
        """Leave some entries of a ledger, and store them in another; the old one is deleted."""
        deleted = self.stored.pop(ledger_id)
        old = dict(deleted)
        deleted.clear()  # for who has it open, too
        place = next(at for at, one in enumerate(self.planned) if one.id == ledger_id)
        if not ids:
            del self.planned[place]
            return
        location = RemainingEntries(stored_in, begin, ids).location
        kept = [old[number] for number in ids] + encoded(ids)
        self.stored[stored_in] = dict(enumerate(kept, begin))
        one = self.planned[place]
        self.planned[place] = PlannedLedger(
            one.id, one.first_index, ids[-1] + 1, len(ids), kept=location
        )
