"""The entries of one ledger of a log, by the ids that they have in it, wherever they are stored.

A query is planned, and read later. Compaction may have replaced the ledger meanwhile, and what the
plan names is deleted. So when an entry is not where the plan has it, the server is asked where the
ledger is now:

    stored elsewhere                  it is read there; what has been compacted away is no loss
    on other bookies                  it is read there: what some had lost was copied to others
    gone, and its log begins before   compaction has left nothing of it: no loss
    gone, and its log begins behind   it was deleted: a loss
    gone, and its log is another one  so it was
    where it was                      the entry is lost

Bookies that cannot be reached may come back, and are asked again; or others have taken their place,
which the server knows. It is asked at the first failure, and ever more rarely as they go on.

Kafka's cleaner leaves what it has replaced for a minute (`file.delete.delay.ms`), and a reader that
takes longer fails; asking takes no time unless something is missing.

Invariant: each entry that is asked for is given, or compacted away, or told to `lose`.
"""

from __future__ import annotations

import enum
import logging
import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, Self

from magnetar.bookie.reading.range_read import Entries
from magnetar.core.kernel.errors import BrokerError, Corrupted, EntryNotFound, LedgerNotFound
from magnetar.core.ledger.log.remaining_entries import decoded, id_entries, parse_location
from magnetar.core.ledger.read.reading_plan import ReadingPlan
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.planning.ranges import EntryRange, is_another
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory, StoredLedger

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.5
"""Before bookies that cannot be reached are asked again."""

Run = tuple[int, list[bytes]]
"""Consecutive entries, behind the id of the first."""
Lose = Callable[[str], None]
"""Told what cannot be had; it raises where that ends the query."""


class Where(enum.Enum):
    """Where a ledger is now that is not where it was."""

    MOVED = "moved"
    COMPACTED_AWAY = "compacted away"
    DELETED = "deleted"
    UNMOVED = "unmoved"


class LedgerEntries:
    """See the module's docstring."""

    def __init__(
        self, directory: LedgerDirectory, one: EntryRange, lose: Lose, timeout_seconds: float
    ) -> None:
        """Of the ledger of a range; which of its entries is said later."""
        self._directory = directory
        self._one = one
        self._lose = lose
        self._timeout_seconds = timeout_seconds
        self._location = "" if directory.is_server else one.kept
        """Where the ledger is stored, if it was compacted."""
        self._ledger: StoredLedger | None = None
        self._ids: list[int] | None = None
        """Of the entries that compaction has left, when they are known."""
        self._asked = False
        """Whether the server has said that the ledger is where it was, since the last entry."""
        self._gone: Where | None = None
        """Why nothing of it is anywhere any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.__exit__(None, None, None)
            self._ledger = None

    def runs(self, first: int, last: int) -> Iterator[Run]:
        """The entries `first` to `last` that are there."""
        following = first
        while following <= last:
            try:
                for run in self._stored(following, last):
                    following, self._asked = run[0] + len(run[1]), False
                    yield run
                return
            except (EntryNotFound, LedgerNotFound, RefusedError) as error:
                where = Where.UNMOVED if self._asked else self._gone or self._now(error)
                match where:
                    case Where.MOVED:
                        continue
                    case Where.COMPACTED_AWAY:
                        self._gone = where
                        return
                    case Where.DELETED:
                        self._gone = where
                        self._lose_to(last, following, "the ledger has been deleted")
                        return
                    case Where.UNMOVED:
                        self._asked = True
                        following = self._lost(following, last, error)
            except Corrupted as error:
                following = self._lost(following, last, error)

    def _stored(self, first: int, last: int) -> Iterator[Run]:
        if not self._location:
            for run in self._read(self._one.ledger_id, first, last):
                yield run.first, run.payloads
            return
        stored_in, stored_first, count = parse_location(self._location)
        if self._ids is None:
            ids_at = stored_first + count
            stored: list[bytes] = []
            for run in self._read(stored_in, ids_at, ids_at + id_entries(count) - 1):
                stored += run.payloads
            self._ids = decoded(stored, count)
        ids = self._ids
        begin, end = bisect_left(ids, first), bisect_right(ids, last)
        if begin < end:
            for run in self._read(stored_in, stored_first + begin, stored_first + end - 1):
                for place, entry in enumerate(run.payloads, run.first - stored_first):
                    yield ids[place], [entry]

    def _read(self, stored_in: int, first: int, last: int) -> Iterator[Entries]:
        """Entries as they are stored; bookies that cannot be reached are asked again."""
        following, until, failures = first, math.inf, 0
        while following <= last:
            if self._ledger is None:
                self._ledger = self._directory.opened(self._one.log, stored_in)
            try:
                for run in self._ledger.read(following, last):
                    following, until, failures = run.first + len(run.payloads), math.inf, 0
                    yield run
                return
            except (EntryNotFound, LedgerNotFound, Corrupted):
                raise
            except BrokerError as error:
                failures += 1
                if failures.bit_count() == 1 and self._is_elsewhere(stored_in):  # 1, 2, 4, 8, ...
                    self._close()
                    continue
                now = time.monotonic()
                until = min(until, now + self._timeout_seconds)
                if now >= until:
                    raise ServiceError(f"{self._one.log}: {error}") from error
                time.sleep(PAUSE_SECONDS)

    def _is_elsewhere(self, stored_in: int) -> bool:
        """Whether the server knows other bookies of a ledger, or bookies are shown another ticket
        now. If it does not answer, the bookies still may; what it refuses may not be read any more.
        """
        try:
            renewed = self._directory.renew(self._one.log, stored_in)
            return renewed or self._directory.has_ticket(stored_in)
        except RefusedError:
            raise
        except ServiceError as error:
            log.warning(
                "%s: the server cannot say where ledger %d is: %s", self._one.log, stored_in, error
            )
            return False

    # -- what is not there --------------------------------------------------------------------

    def _lose_to(self, last: int, following: int, why: object) -> None:
        self._lose(f"entries {self._one.ledger_id}:{following} to {last}: {why}")

    def _lost(self, following: int, last: int, error: Exception) -> int:
        """Tell that an entry is lost, or all of them; returns the one behind."""
        whole = isinstance(error, LedgerNotFound | RefusedError)
        if whole or (self._location and self._ids is None):
            self._lose_to(last, following, error)
            return last + 1
        if self._ids is None:
            self._lose(str(error))
        else:
            following = self._ids[bisect_left(self._ids, following)]
            self._lose(f"entry {self._one.ledger_id}:{following}: {error}")
        return following + 1

    def _now(self, error: Exception) -> Where:
        """Where the ledger is, as the server knows; it is read there from here on."""
        one = self._one
        try:
            plan = self._directory.plan(one.log)
        except ServiceError as asking:
            raise ServiceError(
                f"{one.log}: {error}; where it is now the server has to say: {asking}"
            ) from error
        now = None if plan is None else plan.ledger(one.ledger_id)
        if now is None:
            return Where.COMPACTED_AWAY if _compacted_away(one, plan) else Where.DELETED
        location = "" if self._directory.is_server else now.kept
        stored_in = parse_location(location)[0] if location else one.ledger_id
        renewed = self._directory.renew(one.log, stored_in)
        if location == self._location and not renewed:
            return Where.UNMOVED
        self._close()
        if location != self._location:
            self._location, self._ids = location, None
        return Where.MOVED


def _compacted_away(one: EntryRange, plan: ReadingPlan | None) -> bool:
    """Whether a ledger that is none of its log's has lost its last entry to compaction: then the
    log begins where it did. By retention a log begins behind it, and one that was deleted and made
    again has no place for it. Without indexes, which other brokers may not store, nobody knows.
    """
    if plan is None or not 0 <= one.first_index < one.next_index:
        return False
    begins = max(one.first_index, one.from_offset)  # records may be deleted within a ledger
    if not 0 <= plan.first.index <= begins:
        return False
    return not is_another(one.ledger_id, one.next_index, plan)
