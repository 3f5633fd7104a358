"""The transaction coordinator: the participants of each transaction, and one outcome for all.

To end a transaction it stores the decision and answers; then it writes a marker to every log, and
fulfils the promises (offset commits) if it was committed; then it stores that all is done. After a
crash in between these steps are repeated: a second marker, or a promise fulfilled twice, changes
nothing. A decided transaction takes no new participants: a writer that begins the next one waits.

A coordinator that was replaced while it carries a decision out must not go on: the same writer may
have begun the next transaction with the new one. So the record is verified before a log is loaded,
and once more when it is, right before the marker is appended. No other coordinator can have come to
the end of the transaction in between: it would have had to load the same log and mark it, which
fences this one's.

Each transaction is a record with one owner (`core/cluster/owned_record.py`). It is loaded when this
broker starts or first needs it, if this broker owns it; others are neither loaded nor ended here.
Loading does not claim it: every change of a transaction is a write, and a second marker of the same
decision changes nothing. A coordinator that finds a record written by another one drops it and
raises `NotCoordinator`; on the next request it asks again for the owner.

Invariants: no change of a transaction is answered before it is stored; operations on one name
happen one at a time; a decision never changes, for it is conditional on the record it replaces.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

import msgspec
import trio
from msgspec.structs import replace

from magnetar.core.cluster.owned_record import OwnedRecord, RecordState
from magnetar.core.cluster.ownership import Ownership
from magnetar.core.entry.form import TransactionalForm
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    Fenced,
    NotCoordinator,
    TopicNotFound,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.topic.topic import Topic
from magnetar.core.transactions.transaction import AT_REST, Promise, Transaction, TransactionState

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 5.0
SWEEP_SECONDS: Final = 1.0
MARKED_AT_ONCE: Final = 100
"""Logs of one transaction."""

_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.Decoder(Transaction).decode

CommitPending = Callable[[Iterable[Promise]], Awaitable[None]]
"""Keeps promises; raises `BrokerError` if that is to be tried again."""


class TopicHost(Protocol):
    """What the coordinator needs of the broker, which stands above it."""

    metadata: MetadataStore
    ownership: Ownership
    clock: Clock

    async def topic(self, name: TopicName, *, create: bool) -> Topic: ...

    def spawn(self, task: Callable[..., object], *args: object) -> None: ...


class TransactionSlot:
    """A name, and its transaction if there is one."""

    __slots__ = ("lock", "logs", "lost", "name", "record", "rest", "transaction")

    def __init__(self, name: str, record: OwnedRecord[Transaction]) -> None:
        self.name = name
        self.record = record
        self.transaction: Transaction | None = None
        """The record's value; looked up for each batch."""
        self.logs: frozenset[str] = frozenset()
        self.lost = False
        """Another coordinator has taken the name over: nothing is done in here any more."""
        self.lock = trio.Lock()
        self.rest = trio.Event()
        """Set while no decision is on its way to the logs."""
        self.rest.set()


class TransactionCoordinator:
    """See the module's docstring."""

    def __init__(
        self, broker: TopicHost, path: str, form: TransactionalForm, keep: CommitPending
    ) -> None:
        """`form` is that of the markers."""
        self._broker = broker
        self._form = form
        self._path = path
        self._keep = keep
        self._places: dict[str, TransactionSlot] = {}
        self._writers: dict[int, TransactionSlot] = {}

    async def open(self) -> None:
        """Load the stored transactions that are ours; what was decided is carried out."""
        for quoted in await self._broker.metadata.children(self._path):
            name = unquote(quoted)
            if await self._broker.ownership.transaction(name) is None:
                place = self._place(name)
                async with place.lock:
                    try:
                        await self._load(place)
                    except Corrupted as error:  # this one fails, and no other
                        log.error("transaction %s: %s", name, error)
                self._drop_unused(place)

    async def run(self, idle_ms_max: int) -> None:
        """Until cancelled: abort transactions that time out, and forget names unused for long."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now_ms = self._broker.clock.wall_ms()
            for place in list(self._places.values()):
                found = place.transaction
                if found is None or found.decided:
                    continue
                try:
                    idle_ms = now_ms - found.changed_ms
                    if found.state is TransactionState.ONGOING and found.expires_ms() < now_ms:
                        await self._time_out(place)
                    elif found.state is not TransactionState.ONGOING and idle_ms > idle_ms_max:
                        await self._forget(place)
                except BrokerError as error:
                    log.warning("transaction %s: %s", found.name, error)

    # -- questions ----------------------------------------------------------------------------

    def find(self, name: str) -> Transaction | None:
        place = self._places.get(name)
        return place.transaction if place is not None else None

    def of_writer(self, writer: int) -> Transaction | None:
        """The transaction of the writer with that id. Plain call: made for each batch."""
        place = self._writers.get(writer)
        return place.transaction if place is not None else None

    def admits(self, writer: int, epoch: int, log: str) -> bool:
        """Whether that writer may write to that log, in a transaction that goes on. Plain call."""
        place = self._writers.get(writer)
        if place is None or place.transaction is None:
            return False
        found = place.transaction
        return (
            found.epoch == epoch and found.state is TransactionState.ONGOING and log in place.logs
        )

    def all(self) -> Iterator[Transaction]:
        for place in self._places.values():
            if place.transaction is not None:
                yield place.transaction

    # -- changes ------------------------------------------------------------------------------

    @asynccontextmanager
    async def alone_with(self, name: str, *, settled: bool) -> AsyncIterator[TransactionSlot]:
        """Nobody else changes that transaction; `settled` waits until a decision is everywhere.

        `NotCoordinator` if it is another broker's.
        """
        while True:
            place = self._place(name)
            try:
                await self._lock(place, settled=settled)
                try:
                    if not place.lost and await self._is_ready(place, settled=settled):
                        yield place
                        return
                finally:
                    place.lock.release()
            finally:
                self._drop_unused(place)

    @staticmethod
    async def _lock(place: TransactionSlot, *, settled: bool) -> None:
        while True:
            if settled:
                await place.rest.wait()
            await place.lock.acquire()
            if not settled or place.rest.is_set():
                return
            place.lock.release()

    def _place(self, name: str) -> TransactionSlot:
        place = self._places.get(name)
        if place is None:
            path = f"{self._path}/{quote(name, safe='')}"
            record = OwnedRecord(self._broker.metadata, path, _encode, _decode)
            place = self._places[name] = TransactionSlot(name, record)
        return place

    def _drop_unused(self, place: TransactionSlot) -> None:
        unused = place.transaction is None and not place.lock.statistics().tasks_waiting
        if unused and not place.lock.locked() and self._places.get(place.name) is place:
            del self._places[place.name]

    async def _is_ready(self, place: TransactionSlot, *, settled: bool) -> bool:
        """Whether the caller's turn begins: the record is known, and at rest if it is to be."""
        if place.record.state is RecordState.UNREAD:
            if await self._broker.ownership.transaction(place.name) is not None:
                raise _not_coordinator(place.name)
            await self._load(place)
        elif place.record.state is RecordState.UNSURE:
            try:
                await place.record.settle()
            except Fenced as error:
                raise self._lost(place) from error
            self._know(place)
            self._finish_later(place)
        return place.rest.is_set() or not settled

    async def _load(self, place: TransactionSlot) -> None:
        """Alone with it."""
        if place.record.state is RecordState.UNREAD:
            await place.record.load()
            self._know(place)
            self._finish_later(place)

    def _know(self, place: TransactionSlot) -> None:
        """Take over the state of the record."""
        before, place.transaction = place.transaction, place.record.value
        if before is not None:
            self._writers.pop(before.writer, None)
        place.logs = frozenset()
        if place.transaction is not None:
            place.logs = frozenset(place.transaction.logs)
            self._writers[place.transaction.writer] = place

    def _lost(self, place: TransactionSlot) -> NotCoordinator:
        """Another coordinator has written the record; returns what to raise."""
        if not place.lost:
            log.warning("transaction %s: another broker coordinates it now", place.name)
        place.lost = True
        if place.transaction is not None and self._writers.get(place.transaction.writer) is place:
            del self._writers[place.transaction.writer]
        if self._places.get(place.name) is place:
            del self._places[place.name]
        place.rest.set()
        return _not_coordinator(place.name)

    async def store(
        self, place: TransactionSlot, found: Transaction, **changes: Any
    ) -> Transaction:
        """Store what it is from now on; `NotCoordinator` if another broker has taken it over."""
        changed = replace(found, changed_ms=self._broker.clock.wall_ms(), **changes)
        try:
            await place.record.write(changed)
        except Fenced as error:
            raise self._lost(place) from error
        self._know(place)
        return changed

    async def extend(
        self,
        place: TransactionSlot,
        *,
        logs: Iterable[str] = (),
        parties: Iterable[str] = (),
        promises: Iterable[Promise] = (),
    ) -> None:
        """More is in it; the first of it begins it."""
        found = place.transaction
        assert found is not None, "a transaction begins with its writer"
        assert not found.decided, "nothing new comes into what is decided"
        if found.state is not TransactionState.ONGOING:
            now_ms = self._broker.clock.wall_ms()
            found = replace(found, state=TransactionState.ONGOING, began_ms=now_ms)
        await self.store(
            place,
            found,
            logs=tuple(dict.fromkeys((*found.logs, *logs))),
            parties=tuple(dict.fromkeys((*found.parties, *parties))),
            promises=(*found.promises, *promises),
        )

    async def decide(
        self, place: TransactionSlot, *, commit: bool, epoch: int | None = None
    ) -> None:
        """It is decided when this returns; the rest happens later."""
        found = place.transaction
        assert found is not None, "a transaction begins with its writer"
        assert found.state is TransactionState.ONGOING, "only what goes on is decided"
        state = TransactionState.COMMITTING if commit else TransactionState.ABORTING
        await self.store(place, found, state=state, epoch=found.epoch if epoch is None else epoch)
        self._finish_later(place)

    async def _time_out(self, place: TransactionSlot) -> None:
        async with self.alone_with(place.name, settled=False) as place:
            found = place.transaction
            if found is not None and found.state is TransactionState.ONGOING:
                log.info("transaction %s: aborted after %d ms", found.name, found.timeout_ms)
                # its writer may not go on
                await self.decide(place, commit=False, epoch=found.epoch + 1)

    async def _forget(self, place: TransactionSlot) -> None:
        async with self.alone_with(place.name, settled=True) as place:
            found = place.transaction
            if found is None or found.state is TransactionState.ONGOING:
                return
            try:
                await place.record.delete()
            except Fenced as error:
                raise self._lost(place) from error
            self._know(place)

    # -- carrying out -------------------------------------------------------------------------

    def _finish_later(self, place: TransactionSlot) -> None:
        found = place.transaction
        if found is not None and found.decided and place.rest.is_set():
            place.rest = trio.Event()
            self._broker.spawn(self._finish, place)

    async def _finish(self, place: TransactionSlot) -> None:
        """Tell every log, keep every promise, and store that it is done."""
        found = place.transaction
        assert found is not None
        limiter = trio.CapacityLimiter(MARKED_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for name in found.logs:
                nursery.start_soon(self._mark, place, found, TopicName.parse(name), limiter)
        if found.state is TransactionState.COMMITTING and found.promises:
            await self._insist(place, partial(self._keep_promises, place, found))
        await self._insist(place, partial(self._end, place, found))
        place.rest.set()

    async def _keep_promises(self, place: TransactionSlot, found: Transaction) -> None:
        await self._verify(place)
        await self._keep(found.promises)

    async def _verify(self, place: TransactionSlot) -> None:
        """`NotCoordinator` if another coordinator has written the record."""
        try:
            await place.record.verify()
        except Fenced as error:
            raise self._lost(place) from error

    async def _end(self, place: TransactionSlot, found: Transaction) -> None:
        """All is done. Another coordinator that has the name now comes to the same end."""
        await self.store(place, found, state=AT_REST[found.state], logs=(), parties=(), promises=())

    async def _mark(
        self,
        place: TransactionSlot,
        found: Transaction,
        name: TopicName,
        limiter: trio.CapacityLimiter,
    ) -> None:
        async def mark() -> None:
            await self._verify(place)
            try:
                topic = await self._broker.topic(name, create=False)
            except TopicNotFound:
                return  # deleted, and with it what was written
            await self._verify(place)
            commit = found.state is TransactionState.COMMITTING
            # appends before it awaits anything
            await topic.end_transaction(self._form, found.writer, found.epoch, committed=commit)

        async with limiter:
            await self._insist(place, mark)

    async def _insist(
        self, place: TransactionSlot, action: Callable[[], Awaitable[object]]
    ) -> None:
        """Until it is done, since what is decided is decided, or another coordinator's to do."""
        pause = RETRY_SECONDS
        while not place.lost:
            try:
                await action()
            except NotCoordinator as error:
                log.info("transaction %s: %s", place.name, error)
                return
            except BrokerError as error:
                log.warning("transaction %s: tried again, %s", place.name, error)
                await trio.sleep(pause)
                pause = min(2 * pause, RETRY_SECONDS_MAX)
            else:
                return


def _not_coordinator(name: str) -> NotCoordinator:
    return NotCoordinator(f"another broker coordinates transaction {name}")
