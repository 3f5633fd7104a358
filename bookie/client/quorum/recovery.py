"""Takes a ledger from its writer and closes it at its end: fencing, recovery reads, recovery adds.

    1  the metadata say IN_RECOVERY, so that the writer can neither close it nor change ensembles
    2  the bookies of the last segment are fenced, until no add can reach its ack quorum any more;
       they tell how far it was confirmed for certain
    3  beyond that, entry by entry, until one was certainly never confirmed: it is read from the
       bookies that had it when the recovery began, and stored again by an ack quorum
    4  the metadata say CLOSED, with the last entry and with the segments that 3 has made

Entries are read ahead, several at the same time (`reads_ahead.py`), and stored while the next are
read, both bounded by bytes; they count in order. What is stored again is what was read, byte for
byte. Changes of the ensemble stay here until the ledger is closed, since another recovery must read
what the first one did not store
(`LedgerRecoveryOp.java`, `ReadOnlyLedgerHandle.java` of BookKeeper 4.18).

Invariants: nothing is decided by a guess (`recovery_quorums.py`), so a recovery may fail, and may
be tried again; of two that run at the same time one closes the ledger, and both end alike.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from magnetar.bookie.client.quorum.answers import MISSING, Answers
from magnetar.bookie.client.quorum.ensemble_adds import ClientServices, EnsembleAdds
from magnetar.bookie.client.quorum.ledger_view import Ensemble, LedgerView, put_segment
from magnetar.bookie.client.quorum.pending_adds import PendingAdds
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.reads_ahead import ReadsAhead
from magnetar.bookie.client.quorum.recovery_quorums import Fencing, Proof, RecoveryRead
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.entries import DigestHeader, header_of, run_of
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.rpc.messages import LAST_ENTRY, Read, ReadEntry
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    Fenced,
    StorageFailed,
    Unauthorized,
)

ENTRIES_MAX: Final = 2**40
"""Of a ledger: at a million a second it takes twelve days to write them. Whoever may write to a
bookie may add an entry with the highest id there is, and behind it nothing could be read.
"""
LENGTH_TRIES: Final = 5
LENGTH_PAUSE_SECONDS: Final = 0.5
log = logging.getLogger(__name__)


async def ask_for_end(services: ClientServices, view: LedgerView, *, fence: bool) -> Fencing:
    """How far bookies of the last segment know the ledger to be confirmed; with `fence`, no more is
    after this. `StorageFailed` if too few answer.
    """
    first, ensemble = view.last_segment
    fencing = Fencing(view.striping, first)
    answers = Answers(services.connections)
    key = view.master_key if fence else None
    request = Read(view.ledger_id, LAST_ENTRY, key, fence=fence, high_priority=fence)
    for position, bookie in enumerate(ensemble):
        answers.ask(position, bookie, request)
    failures: list[str] = []
    while fencing.proof is Proof.UNDECIDED:
        position, response = await answers.next()
        if isinstance(response, Unauthorized):
            raise response
        if isinstance(response, BrokerError) and not isinstance(response, MISSING):
            failures.append(str(response))
            fencing.failed(position)
        else:
            fencing.fenced(position, _last_entry(view, response))
    if fencing.proof is Proof.LOST:
        raise StorageFailed(f"ledger {view.ledger_id}: too few bookies answer: {failures}")
    return fencing


def _last_entry(view: LedgerView, response: object) -> DigestHeader | None:
    """The last entry of a bookie; None if there is none, or none that is intact, or that a writer
    can have written: then this bookie tells nothing, and more entries are read.
    """
    if not isinstance(response, ReadEntry) or not response.entry:
        return None
    try:
        last = view.open_last(response.entry)
    except Corrupted:
        return None
    return last if last.last_confirmed < last.entry_id < ENTRIES_MAX else None


async def recover(
    view: LedgerView, services: ClientServices, settings: QuorumSettings, ledgers: ClusterLedgers
) -> LedgerMetadata:
    """Recover a ledger, and return its metadata, which are those of a closed one."""

    def begin(ledger: LedgerMetadata) -> bool:
        if ledger.state != ledger_metadata.OPEN:
            return False
        ledger.state = ledger_metadata.IN_RECOVERY
        return True

    ledger = await ledgers.change(view.ledger_id, begin)
    if ledger.state == ledger_metadata.CLOSED:
        return ledger
    view.follow(ledger)
    return await Recovery(view, services, settings, ledgers).run()


class Recovery:
    """A recovery that has begun; see the module's docstring."""

    def __init__(
        self,
        view: LedgerView,
        services: ClientServices,
        settings: QuorumSettings,
        ledgers: ClusterLedgers,
    ) -> None:
        self._view = view
        self._services = services
        self._settings = settings
        self._ledgers = ledgers
        _, self._read_from = view.last_segment
        self._segments: dict[int, Ensemble] = {}
        """Those that the recovery has made, by their first entry."""
        self._pending = PendingAdds(view.striping, self._read_from)
        self._adds = EnsembleAdds(
            services, self._pending, view.striping, view.master_key, self._record, self._ended
        )
        self._adds.recovery = True
        self._error: BrokerError | None = None
        self._stores: deque[tuple[int, Completion[None]]] = deque()
        """What is being stored again: its bytes, and when it is."""
        self._stores_bytes = 0

    async def run(self) -> LedgerMetadata:
        """Find the end of the ledger, and close it there."""
        end = await ask_for_end(self._services, self._view, fence=True)
        self._pending.last_confirmed = end.last_confirmed
        try:
            await self._read_and_store(end.last_confirmed + 1)
        finally:
            self._adds.end(StorageFailed(f"the recovery of ledger {self._view.ledger_id} is over"))
        if self._pending.last_confirmed == end.last_confirmed:
            self._pending.length_confirmed = await self._length_up_to(end)
        return await self._close()

    async def _length_up_to(self, end: Fencing) -> int:
        """The length of a ledger of which nothing was stored again: its last entry tells.

        A ledger is not left open because nobody can read that: it is confirmed, and the length
        is for information. Then it is what a later entry has told, as in Apache's recovery
        (`LedgerRecoveryOp.java` of 4.18 asks no further). Bookies that do not answer are asked
        again before.
        """
        entry_id = end.last_confirmed
        if entry_id < 0:
            return 0
        reader = QuorumReader(
            self._view, self._services, self._settings, lambda: entry_id, _nothing_new
        )
        for tries_left in reversed(range(LENGTH_TRIES)):
            try:
                entry = await reader.read_entry(entry_id)
            except StorageFailed as error:
                if not tries_left:
                    return self._guess(end, error)
                await trio.sleep(LENGTH_PAUSE_SECONDS)
            except BrokerError as error:
                return self._guess(end, error)
            else:
                break
        return header_of(run_of(entry), entry_id).length

    def _guess(self, end: Fencing, error: BrokerError) -> int:
        log.warning("the length of ledger %d is a guess: %s", self._view.ledger_id, error)
        return end.length_told

    # -- reading ------------------------------------------------------------------------------

    async def _read_and_store(self, entry_id: int) -> None:
        """Store again what may have been confirmed, from an entry on."""
        settings = self._settings
        reads = ReadsAhead(
            self._begin_read,
            entry_id,
            copies=self._view.striping.write,
            count_max=settings.recovery_reads_ahead,
            bytes_max=settings.recovery_bytes_max,
        )
        try:
            while (entry := await self._decide(entry_id, *reads.first())) is not None:
                reads.decided(len(entry))
                await self._wait_for_room(len(entry))
                self._stores.append((len(entry), self._store_again(entry)))
                self._stores_bytes += len(entry)
                entry_id += 1
        finally:
            reads.end()
        while self._stores:
            await self._wait_for_first()

    async def _wait_for_room(self, size: int) -> None:
        """Wait until one more of this size may be stored: by halves of their number, so that they
        travel many together.
        """
        stores, count_max = self._stores, self._settings.recovery_reads_ahead
        if len(stores) >= count_max:
            while len(stores) > count_max // 2:
                await self._wait_for_first()
        while stores and self._stores_bytes + size > self._settings.recovery_bytes_max:
            await self._wait_for_first()

    async def _wait_for_first(self) -> None:
        size, stored = self._stores.popleft()
        await stored.result()
        self._stores_bytes -= size

    def _begin_read(
        self, entry_id: int, held: Callable[[int], None]
    ) -> tuple[RecoveryRead, Answers]:
        read = RecoveryRead(self._view.striping, entry_id)
        answers = Answers(self._services.connections, held)
        request = Read(
            self._view.ledger_id, entry_id, self._view.master_key, fence=True, high_priority=True
        )
        for position in read.write_set:
            answers.ask(position, self._read_from[position], request)
        return read, answers

    async def _decide(self, entry_id: int, read: RecoveryRead, answers: Answers) -> bytes | None:
        """The entry, or None if it certainly was not confirmed."""
        failures: list[str] = []
        while read.proof is Proof.UNDECIDED:
            position, response = await answers.next()
            if isinstance(response, Unauthorized):
                raise response
            if isinstance(response, MISSING):
                read.missing(position)
                continue
            try:
                if isinstance(response, BrokerError):
                    raise response
                assert isinstance(response, ReadEntry)
                entry = response.entry or b""
                self._view.open_entry(entry_id, entry)
                read.found(position, entry)
            except BrokerError as error:
                failures.append(str(error))
                read.failed(position)
        if read.proof is Proof.LOST:
            raise StorageFailed(
                f"whether entry {self._view.ledger_id}:{entry_id} was confirmed cannot be decided: "
                f"{failures}"
            )
        return read.entry

    # -- storing again ------------------------------------------------------------------------

    def _store_again(self, entry: bytes) -> Completion[None]:
        completion: Completion[None] = Completion()
        if self._error is not None:
            raise self._error
        run = run_of(entry)
        self._adds.send(run, header_of(run, run.first).length, completion.done)
        return completion

    async def _record(self, first: int, ensemble: Ensemble) -> None:
        """Remember a segment until the ledger is closed."""
        await trio.lowlevel.checkpoint()
        self._segments[first] = ensemble

    def _ended(self, error: BrokerError) -> None:
        if self._error is None:
            self._error = error

    # -- closing ------------------------------------------------------------------------------

    async def _close(self) -> LedgerMetadata:
        last, length = self._pending.last_confirmed, self._pending.length_confirmed
        expected = self._view.last_segment

        def close(ledger: LedgerMetadata) -> bool:
            if ledger.state == ledger_metadata.CLOSED:  # by another recovery
                return False
            found = ledger.segment[-1]
            if (
                ledger.state != ledger_metadata.IN_RECOVERY
                or (found.firstEntryId, tuple(found.ensembleMember)) != expected
            ):
                raise Fenced(f"ledger {self._view.ledger_id} was changed during its recovery")
            for first, ensemble in self._segments.items():
                put_segment(ledger, first, ensemble)
            ledger.state = ledger_metadata.CLOSED
            ledger.lastEntryId, ledger.length = last, length
            return True

        return await self._ledgers.change(self._view.ledger_id, close)


async def _nothing_new() -> bool:
    return False
