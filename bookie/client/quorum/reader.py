"""Reads one ledger from the bookies that have it, up to where it is confirmed.

An entry is asked of one bookie of its write set, and of the next one if that fails, or does not
answer for a while. Where all bookies have all entries (E = W), consecutive ones come in one answer,
and of one bookie for the whole ledger, which reads ahead; else each entry is asked for on its own,
several at the same time (`PendingReadOp.java`, `BatchedReadOp.java` of BookKeeper 4.18), and so it
is of bookies that know no batches.

Bookies that have been lost are replaced in the metadata by those who repair the ledger, so if no
bookie has an entry the metadata are read again.

Invariant: nothing beyond `last_confirmed` is read; every payload has had its digest checked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import trio

from magnetar.bookie.client.quorum.answers import Answers, Result, ask_in_turn
from magnetar.bookie.client.quorum.ensemble_adds import ClientServices
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

READS_AT_ONCE_MIN: Final = 16
READS_AT_ONCE_MAX: Final = 256
"""Entries that are asked for at the same time where each is on other bookies: the first, and then
as many as seem to fit.
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

    async def read_entries(self, entry_ids: Sequence[int]) -> list[bytes]:
        """Entries of one segment as they are stored, at the same time; all, or an error."""
        ensemble, _ = self._view.segment_of(entry_ids[0])

        def keep(entry_id: int, entry: bytes) -> bytes:
            self._view.open_entry(entry_id, entry)
            return entry

        found = await self._read_some(ensemble, entry_ids, keep)
        for entry in found:
            if isinstance(entry, BrokerError):
                raise entry
        return [entry for entry in found if isinstance(entry, bytes)]

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
        run = run_in(records)
        if run is None or (run.ledger_id, run.first) != (self.ledger_id, first):
            raise Corrupted(f"entry {self.ledger_id}:{first} is another one")
        if run.last > last:
            run = cut(run, last - first + 1)
        intact = count_intact(run) if self._view.has_crc32c else self._count_opened(run)
        if not intact:
            raise Corrupted(f"entry {self.ledger_id}:{first} does not have its digest")
        return run if intact == run.count else cut(run, intact)

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
            run = run_in(records)
            if run is None or (run.ledger_id, run.first) != (self.ledger_id, first):
                raise Corrupted(f"entry {self.ledger_id}:{first} is another one")
            return run.checked_payloads(first, last, bytes_max)
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
        payloads: list[bytes] = []
        total, count = 0, READS_AT_ONCE_MIN
        while first <= last and total < bytes_max:
            ids = range(first, min(last, first + count - 1) + 1)
            found = await self._read_some(ensemble, ids, self._view.open_entry)
            for payload in found:
                if isinstance(payload, BrokerError):
                    if payloads:
                        return payloads
                    raise payload
                total += len(payload)
                if payloads and total > bytes_max:
                    return payloads
                payloads.append(payload)
            first += len(found)
            fitting = (bytes_max - total) * len(payloads) // max(total, 1)
            count = min(max(fitting, READS_AT_ONCE_MIN), READS_AT_ONCE_MAX)
        return payloads

    async def _read_some(
        self,
        ensemble: Ensemble,
        entry_ids: Sequence[int],
        opened: Callable[[int, bytes], bytes],
    ) -> list[bytes | BrokerError]:
        """What `opened` makes of entries that are asked for at the same time, or why they cannot be
        read. It raises `Corrupted` for one that is not intact.

        One bookie is asked for each, all together; for what is missing then, the others are.
        """
        found: dict[int, bytes | BrokerError] = {}
        answers = Answers(self._services.connections)
        for entry_id in entry_ids:
            (bookie, *_) = self._well_first(self._write_set(ensemble, entry_id))
            answers.ask(entry_id, bookie, Read(self.ledger_id, entry_id))
        with trio.move_on_after(self._settings.speculative_read_seconds):
            while answers.waiting:
                entry_id, response = await answers.next()
                if isinstance(response, ReadEntry):
                    with suppress(Corrupted):
                        found[entry_id] = opened(entry_id, response.entry or b"")

        async def read(entry_id: int) -> None:
            try:
                found[entry_id] = opened(entry_id, await self._entry(ensemble, entry_id))
            except BrokerError as error:
                found[entry_id] = error

        async with trio.open_nursery() as nursery:
            for entry_id in entry_ids:
                if entry_id not in found:
                    nursery.start_soon(read, entry_id)
        return [found[entry_id] for entry_id in entry_ids]
