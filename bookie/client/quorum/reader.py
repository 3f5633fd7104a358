"""Reads one ledger from the bookies that have it, up to where it is confirmed.

An entry is asked of one bookie of its write set, and of the next one if that fails, or does not
answer for a while. Where all bookies have all entries (E = W), consecutive ones come in one answer,
and of one bookie for the whole ledger, which reads ahead; else each entry is asked for on its own,
several at the same time (`PendingReadOp.java`, `BatchedReadOp.java` of BookKeeper 4.18), and so it
is of bookies that know no batches.

Bookies that have been lost are replaced in the metadata by those who repair the ledger, so if no
bookie has an entry the metadata are read again.

Invariants: nothing beyond `last_confirmed` is read; every payload has had its digest checked; a
read keeps no more than it was asked for, or one entry, and the one that is just coming.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import trio

from magnetar.bookie.client.quorum.answers import Answers, Result, ask_in_turn
from magnetar.bookie.client.quorum.ensemble_adds import ClientServices
from magnetar.bookie.client.quorum.entry_prefix import EntryPrefix
from magnetar.bookie.client.quorum.ledger_view import Ensemble, LedgerView
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.format.entries import (
    LENGTH_BYTES,
    RECORD_OVERHEAD_BYTES,
    Run,
    count_intact,
    cut,
    entry_of,
    run_in,
)
from magnetar.bookie.rpc.messages import BatchRead, BookieMessage, Read, ReadEntries, ReadEntry
from magnetar.core.kernel.errors import BrokerError, Corrupted, EntryNotFound, StorageFailed

READS_AT_ONCE_MIN: Final = 2
READS_AT_ONCE_MAX: Final = 256
"""Entries that are asked for at the same time where each is on other bookies: at first, and at
most. Between them it is twice as many each time, as far as they seem to fit.
"""
Refresh = Callable[[], Awaitable[bool]]
"""Reads the metadata again; whether the segments are others than before."""


class QuorumReader:
    """A LedgerReader; see the module's docstring."""

    def __init__(
        self,
        view: LedgerView,
        services: ClientServices,
        settings: QuorumSettings,
        last_confirmed: Callable[[], int],
        refresh: Refresh,
    ) -> None:
        self._view = view
        self._services = services
        self._settings = settings
        self._last_confirmed = last_confirmed
        self._refresh = refresh
        self._entry_bytes = 0
        """Of the largest of the entries that were read one by one last; 0 before there were any."""

    @property
    def ledger_id(self) -> int:
        return self._view.ledger_id

    @property
    def last_confirmed(self) -> int:
        return self._last_confirmed()

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        confirmed = self._last_confirmed()
        if not 0 <= first <= confirmed:
            raise EntryNotFound(f"ledger {self.ledger_id} has no entry {first} yet")
        last = min(last, confirmed)
        try:
            try:
                return await self._read(first, last, bytes_max)
            except (EntryNotFound, StorageFailed):
                if not await self._refresh():
                    raise
            return await self._read(first, last, bytes_max)
        except EntryNotFound as error:
            raise Corrupted(f"entry {self.ledger_id}:{first} was confirmed and is lost") from error

    async def damage(self, entry_id: int) -> tuple[int, int]:
        """That one: others may be damaged on other bookies."""
        return entry_id, entry_id

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Nothing is kept in memory here."""
        return []

    async def _read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        ensemble, end = self._view.segment_of(first)
        if end is not None:
            last = min(last, end)
        if first == last:
            return [await self._read_one(ensemble, first)]
        whole = self._view.striping.write == self._view.striping.ensemble
        if whole and (able := self._able(ensemble)):
            try:
                return await self._read_batch(able, first, last, bytes_max)
            except (EntryNotFound, Corrupted, StorageFailed):
                if len(self._able(ensemble)) == len(ensemble):
                    raise  # all were asked
        return await self._read_striped(ensemble, first, last, bytes_max)

    def _able(self, ensemble: Ensemble) -> list[str]:
        """The bookies that know batch reads, in the order in which this ledger asks them."""
        begin = self.ledger_id % len(ensemble)
        order = [*ensemble[begin:], *ensemble[:begin]]
        refuses = self._services.connections.refuses_batches
        return self._well_first([bookie for bookie in order if not refuses(bookie)])

    # -- one entry ----------------------------------------------------------------------------

    async def read_entry(self, entry_id: int) -> bytes:
        """One entry as it is stored, whether it is confirmed or not."""
        ensemble, _ = self._view.segment_of(entry_id)
        return await self._entry(ensemble, entry_id)

    async def read_entries(
        self, entry_ids: Sequence[int], bytes_max: float = math.inf
    ) -> list[bytes]:
        """Entries of one segment as they are stored, several at the same time: the first of them
        that have room, at least one; an error if one that has room cannot be read.
        """
        ensemble, _ = self._view.segment_of(entry_ids[0])

        def keep(entry_id: int, entry: bytes) -> bytes:
            self._view.open_entry(entry_id, entry)
            return entry

        entries, error = await self._read_one_by_one(ensemble, entry_ids, bytes_max, keep)
        if error is not None:
            raise error
        return entries

    async def _read_one(self, ensemble: Ensemble, entry_id: int) -> bytes:
        return self._view.open_entry(entry_id, await self._entry(ensemble, entry_id))

    async def _entry(self, ensemble: Ensemble, entry_id: int) -> bytes:
        def check(response: BookieMessage) -> bytes:
            assert isinstance(response, ReadEntry)
            entry = response.entry or b""
            self._view.open_entry(entry_id, entry)
            return entry

        order = self._write_set(ensemble, entry_id)
        request = Read(self.ledger_id, entry_id)
        return await ask_in_turn(
            self._services.connections,
            self._well_first(order),
            request,
            check,
            self._settings.speculative_read_seconds,
        )

    def _write_set(self, ensemble: Ensemble, entry_id: int) -> list[str]:
        return [ensemble[position] for position in self._view.striping.write_set(entry_id)]

    def _well_first(self, bookies: Sequence[str]) -> list[str]:
        return sorted(bookies, key=self._services.placement.is_suspect)

    # -- several ------------------------------------------------------------------------------

    async def read_run(self, first: int, last: int, bytes_max: int) -> Run:
        """Entries of one segment as they are stored, which all its bookies have: from the first on,
        as many as one of them gives.
        """

        def check(response: BookieMessage) -> Run:
            assert isinstance(response, ReadEntries)
            return self._intact_run(b"".join(response.records), first, last)

        ensemble, _ = self._view.segment_of(first)
        able = self._able(ensemble)
        if not able:
            raise StorageFailed(f"no bookie of ledger {self.ledger_id} knows batch reads")
        return await self._ask_for_batch(able, first, last, bytes_max, check)

    def _intact_run(self, records: bytes, first: int, last: int) -> Run:
        run = self._run_from(records, first)
        if run.last > last:
            run = cut(run, last - first + 1)
        intact = count_intact(run) if self._view.has_crc32c else self._count_opened(run)
        if not intact:
            raise Corrupted(f"entry {self.ledger_id}:{first} does not have its digest")
        return run if intact == run.count else cut(run, intact)

    def _run_from(self, records: bytes, first: int) -> Run:
        run = run_in(records)
        if run is None or (run.ledger_id, run.first) != (self.ledger_id, first):
            raise Corrupted(f"entry {self.ledger_id}:{first} is another one")
        return run

    def _count_opened(self, run: Run) -> int:
        for place, entry_id in enumerate(range(run.first, run.last + 1)):
            try:
                self._view.open_entry(entry_id, entry_of(run, entry_id))
            except Corrupted:
                return place
        return run.count

    async def _read_batch(
        self, bookies: Sequence[str], first: int, last: int, bytes_max: int
    ) -> list[bytes]:
        def check(response: BookieMessage) -> list[bytes]:
            assert isinstance(response, ReadEntries)
            return self._open_batch(b"".join(response.records), first, last, bytes_max)

        return await self._ask_for_batch(bookies, first, last, bytes_max, check)

    async def _ask_for_batch(
        self,
        bookies: Sequence[str],
        first: int,
        last: int,
        bytes_max: int,
        check: Callable[[BookieMessage], Result],
    ) -> Result:
        count = last - first + 1
        size = min(bytes_max + count * RECORD_OVERHEAD_BYTES, self._settings.batch_bytes_max)
        request = BatchRead(self.ledger_id, first, 0, count, size)
        return await ask_in_turn(
            self._services.connections,
            bookies,
            request,
            check,
            self._settings.speculative_read_seconds,
        )

    def _open_batch(self, records: bytes, first: int, last: int, bytes_max: int) -> list[bytes]:
        """The payloads of a batch: `Corrupted` if the first is not intact, which others end."""
        if self._view.has_crc32c:
            return self._run_from(records, first).checked_payloads(first, last, bytes_max)
        payloads: list[bytes] = []
        at = total = 0
        while at < len(records) and first + len(payloads) <= last:
            after = at + LENGTH_BYTES + int.from_bytes(records[at : at + LENGTH_BYTES], "big")
            try:
                payload = self._view.open_entry(
                    first + len(payloads), records[at + LENGTH_BYTES : after]
                )
            except Corrupted:
                if payloads:
                    break
                raise
            total += len(payload)
            if payloads and total > bytes_max:
                break
            payloads.append(payload)
            at = after
        if not payloads:
            raise Corrupted(f"a batch from {self.ledger_id}:{first} is empty")
        return payloads

    async def _read_striped(
        self, ensemble: Ensemble, first: int, last: int, bytes_max: int
    ) -> list[bytes]:
        ids = range(first, last + 1)
        opened = self._view.open_entry
        payloads, error = await self._read_one_by_one(ensemble, ids, bytes_max, opened)
        if error is not None and not payloads:
            raise error
        return payloads

    async def _read_one_by_one(
        self,
        ensemble: Ensemble,
        entry_ids: Sequence[int],
        bytes_max: float,
        opened: Callable[[int, bytes], bytes],
    ) -> tuple[list[bytes], BrokerError | None]:
        """What `opened` makes of the first entries that have room, at least of one; and why the
        next one cannot be read, if that is what ends them. As many are asked for at the same time
        as seem to have room, if they are as large as those before.
        """
        entries: list[bytes] = []
        left = bytes_max
        at_once = READS_AT_ONCE_MAX if self._entry_bytes else READS_AT_ONCE_MIN
        while len(entries) < len(entry_ids) and (not entries or left >= self._entry_bytes):
            at_once = int(min(at_once, max(left // max(self._entry_bytes, 1), 1)))
            asked = entry_ids[len(entries) : len(entries) + at_once]
            prefix = EntryPrefix(asked, left)
            await self._read_some(ensemble, prefix, opened)
            found, error = prefix.taken()
            if found:
                self._entry_bytes = max(prefix.largest, 1)
            size = sum(map(len, found))
            if entries and size > left:
                break
            entries += found
            left -= size
            if error is not None or len(found) < len(asked):
                return entries, error
            at_once = min(2 * at_once, READS_AT_ONCE_MAX)
        return entries, None

    async def _read_some(
        self, ensemble: Ensemble, prefix: EntryPrefix, opened: Callable[[int, bytes], bytes]
    ) -> None:
        """Complete a prefix with what `opened` makes of entries that are asked for at the same
        time, or why they cannot be read. It raises `Corrupted` for one that is not intact.

        One bookie is asked for each, all together; for what is missing then, the others are.
        """
        answers = Answers(self._services.connections)
        for entry_id in prefix.missing():
            (bookie, *_) = self._well_first(self._write_set(ensemble, entry_id))
            answers.ask(entry_id, bookie, Read(self.ledger_id, entry_id))
        try:
            with trio.move_on_after(self._settings.speculative_read_seconds):
                while answers.waiting and not prefix.complete:
                    entry_id, response = await answers.next()
                    if isinstance(response, ReadEntry):
                        with suppress(Corrupted):
                            prefix.put(entry_id, opened(entry_id, response.entry or b""))
        finally:
            answers.end()
        if prefix.complete:
            return

        async def read(entry_id: int) -> None:
            try:
                found: bytes | BrokerError = opened(entry_id, await self._entry(ensemble, entry_id))
            except BrokerError as error:
                found = error
            prefix.put(entry_id, found)
            if prefix.complete:
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for entry_id in prefix.missing():
                nursery.start_soon(read, entry_id)
