"""Sinks: writers in batches, of which each is committed once, as a whole.

A batch is written by many tasks, and some tasks run twice. Each attempt writes in a transaction of
its own; when all tasks are done, their writer names the attempts that count (the winners), and
their transactions are committed together, all others aborted. The writer may ask that any number of
times, and may write a batch again after a crash: what is committed stays, and the rest is void.

Each sink has a record with one owner (`core/cluster/owned_record.py`): the last batch that is
committed, and its winners. Its one write decides for the whole batch:

    written      attempts of batch b are open; the record has a batch before b
    committed    the record has b and names the winners                            <- the decision
    carried out  the transaction of each attempt of b has its own decision stored: commit for
                 winners, abort for others. Markers follow (`coordinator.py`)

Invariants:
 1. A transaction of a sink is decided here only, in the sink's turn, and by whoever has claimed its
    record: not by its own time-out, nor by a request of its protocol.
 2. A winner is open when the record names it, and stays so until it is committed. By 1 nothing else
    can end it; and another owner, which may not know of the decision, claims the record before it
    decides anything, so that either it reads the decision or our write of it fails.
 3. The record of a batch is replaced only when it is carried out. So an open transaction of a batch
    that the record has passed over was no winner.
 4. A batch number that the record has reached is never written again: its attempts do not begin.
 5. The epoch of a transaction is raised when it ends. No request of an attempt that is over can
    reopen it, and a winner's epoch is not seen again after a crash.

What a crash of the server leaves, by the last step that was stored:

    an attempt begins         it is open, or not there: it is given up like any loser
    the decision              before it, nothing is committed; after it, everything is, by `open`
    some attempts decided     `open` decides the others in the same way
    an answer                 the writer asks again, and hears what it would have heard

What a crash of the writer leaves: open attempts. They are aborted when the batch, written again, is
committed, or when no attempt of the sink has given a sign of life for the transaction's time-out.

A sink that only numbers its rows (`number`) has no transactions: each task has a producer id for
ever, and each batch an epoch. Logs know the last row of each, so a batch that is written again goes
on behind it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import msgspec
import trio
from msgspec.structs import replace

from magnetar.core.cluster.owned_record import OwnedRecord, RecordState
from magnetar.core.cluster.owned_records import OwnedRecords, RecordKind
from magnetar.core.kernel.errors import BrokerError, Fenced, Invalid, NotAllowed, Overloaded
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.sink_record import (
    NEVER,
    Attempt,
    SinkRecord,
    attempt_of,
    is_open,
    is_over,
    name_of,
    place_of,
)
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.topic_host import TopicHost
from magnetar.core.transactions.transaction import Transaction, TransactionState

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 1.0
ATTEMPTS_MAX: Final = 10_000
"""Transactions of one sink, and tasks that number their rows."""
EPOCHS: Final = 32_766
"""Epochs have 16 bits, and the last two are reserved."""


class SinkSlot:
    """A sink as its owner knows it."""

    __slots__ = ("carried_out", "heard_ms", "lock", "name", "places", "record")

    def __init__(self, name: str, record: OwnedRecord[SinkRecord], now_ms: int) -> None:
        self.name = name
        self.record = record
        self.places: set[int] = set()
        """The numbers of its transactions."""
        self.carried_out = False
        """Whether each attempt of the last committed batch is decided."""
        self.heard_ms = now_ms
        """The last sign of life of an attempt."""
        self.lock = trio.Lock()

    @property
    def batch(self) -> int:
        """The last one that is committed."""
        return NEVER if self.record.value is None else self.record.value.batch


class Sinks:
    """See the module's docstring."""

    def __init__(
        self,
        broker: TopicHost,
        path: str,
        coordinator: TransactionCoordinator,
        new_writer: Callable[[], Awaitable[int]],
        timeout_ms_max: int,
    ) -> None:
        """`new_writer` returns a producer id that nobody has."""
        self._broker = broker
        self._coordinator = coordinator
        self._new_writer = new_writer
        self._timeout_ms_max = timeout_ms_max
        self._records = OwnedRecords(
            broker.metadata,
            RecordKind("sink", path, msgspec.json.encode, msgspec.json.Decoder(SinkRecord).decode),
            broker.ownership.transaction,
        )
        self._sinks: dict[str, SinkSlot] = {}

    async def open(self) -> None:
        """Carry out the decisions that are stored. The coordinator is open already."""
        for name in await self._records.names():
            if await self._records.is_ours(name):
                self._sink(name)
        unsure = {found.sink for found in self._coordinator.all() if found.sink and is_open(found)}
        for name in unsure:
            try:
                async with self._turn(name):
                    pass  # which carries out what is decided
            except BrokerError as error:  # the others go on; `run` tries again
                log.warning("sink %s: %s", name, error)

    async def run(self, idle_ms_max: int) -> None:
        """Give up batches of which nothing is heard, and forget unused sinks, until cancelled."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now_ms = self._broker.clock.wall_ms()
            for sink in list(self._sinks.values()):
                try:
                    await self._look_after(sink, now_ms, idle_ms_max)
                except BrokerError as error:
                    log.warning("sink %s: %s", sink.name, error)

    # -- what writers ask ---------------------------------------------------------------------

    async def begin(self, name: str, query: str, batch: int, timeout_ms: int) -> Transaction | None:
        """A new attempt; None if the batch is committed. `timeout_ms` is how long all attempts of
        the sink may be silent before they are given up.
        """
        if not 0 < timeout_ms <= self._timeout_ms_max:
            raise Invalid(f"the server allows transactions of 1 to {self._timeout_ms_max} ms")
        async with self._turn(name) as sink:
            await self._know(sink, query)
            if batch <= sink.batch:
                return None
            place = self._free_place(sink)
            sink.places.add(place)
            async with self._coordinator.alone_with(name_of(name, place), settled=True) as slot:
                return await self._store_new(slot, name, batch, timeout_ms)

    async def renew(self, name: str) -> None:
        """An attempt gives a sign of life."""
        if name in self._sinks:
            self._sinks[name].heard_ms = self._broker.clock.wall_ms()

    async def commit(self, name: str, query: str, batch: int, winners: Sequence[Attempt]) -> None:
        """Commit these attempts of a batch, unless it is committed; returns when they are readable.

        `NotAllowed` if one of them is over: then none is committed.
        """
        async with self._turn(name) as sink:
            record = await self._know(sink, query)
            if record.batch < batch:
                for attempt in winners:
                    self._check_open(sink, batch, attempt)
                sink.carried_out = False
                await self._write(sink, replace(record, batch=batch, winners=tuple(winners)))
            await self._carry_out(sink)
            names = self._names(sink)
        for each in names:
            async with self._coordinator.alone_with(each, settled=True):
                pass  # its markers are written

    async def abort(self, name: str, query: str, losers: Sequence[Attempt]) -> None:
        """Give up these attempts, as far as they are not committed."""
        async with self._turn(name) as sink:
            await self._know(sink, query)
            lost = [found for found in self._open(sink) if attempt_of(found) in losers]
            await self._give_up(lost)

    async def number(self, name: str, query: str, batch: int, task: int) -> Attempt | None:
        """The producer id and epoch by which a task numbers its rows in a batch; None if the batch
        is committed.
        """
        if not 0 <= task < ATTEMPTS_MAX:
            raise Invalid(f"sink {name}: tasks number their rows from 0 to {ATTEMPTS_MAX - 1}")
        async with self._turn(name) as sink:
            record = await self._know(sink, query)
            if batch <= record.batch:
                return None
            writers, begun = record.writers, batch - batch % EPOCHS
            if begun != record.numbered_from:
                writers = ()
            if task >= len(writers):
                wanted = max(task + 1, 2 * len(writers))
                more = [await self._new_writer() for _ in range(wanted - len(writers))]
                writers = (*writers, *more)
                await self._write(sink, replace(record, writers=writers, numbered_from=begun))
            return writers[task], batch - begun

    async def forget(self, name: str) -> None:
        """Delete what is stored of a sink, unless a batch is being written."""
        async with self._turn(name) as sink:
            if self._open(sink):
                return
            for each in self._names(sink):
                await self._coordinator.forget(each)
            await sink.record.delete()
            self._sinks.pop(name, None)

    # -- one sink at a time -------------------------------------------------------------------

    def _sink(self, name: str) -> SinkSlot:
        sink = self._sinks.get(name)
        if sink is None:
            now_ms = self._broker.clock.wall_ms()
            sink = self._sinks[name] = SinkSlot(name, self._records.unread(name), now_ms)
            ours = (found for found in self._coordinator.all() if found.sink == name)
            sink.places |= {place_of(found) for found in ours}
        return sink

    @asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[SinkSlot]:
        """Enter the turn to change a sink, whose last decision is carried out."""
        while True:
            sink = self._sink(name)
            async with sink.lock:
                if self._sinks.get(name) is not sink:
                    continue  # it was forgotten, or lost, meanwhile
                with self._fencing(name):
                    if sink.record.state is RecordState.UNREAD:
                        await self._records.check_owner(name)
                        await sink.record.claim()
                    await sink.record.settle()
                    if not sink.carried_out:
                        await self._carry_out(sink)
                    yield sink
                return

    @contextmanager
    def _fencing(self, name: str) -> Iterator[None]:
        """Another owner has written the record: let go of the sink."""
        try:
            yield
        except Fenced as error:
            self._sinks.pop(name, None)
            raise self._records.elsewhere(name) from error

    async def _know(self, sink: SinkSlot, query: str) -> SinkRecord:
        """The record of a sink that is asked for, made if there is none: a claim needs one."""
        sink.heard_ms = self._broker.clock.wall_ms()
        if sink.record.value is None:
            await self._write(sink, SinkRecord(query))
        record = sink.record.value
        assert record is not None, "it was written"
        if record.query != query:
            raise NotAllowed(
                f"sink {sink.name} is written by {record.query or 'batch jobs'}, not by "
                f"{query or 'batch jobs'}: choose another sink id"
            )
        return record

    async def _write(self, sink: SinkSlot, record: SinkRecord) -> None:
        await sink.record.write(replace(record, changed_ms=self._broker.clock.wall_ms()))

    # -- attempts -----------------------------------------------------------------------------

    def _names(self, sink: SinkSlot) -> list[str]:
        return [name_of(sink.name, place) for place in sink.places]

    def _open(self, sink: SinkSlot) -> list[Transaction]:
        """Attempts that are not decided; in the sink's turn, of batches that are not committed."""
        found = map(self._coordinator.find, self._names(sink))
        return [each for each in found if each is not None and is_open(each)]

    def _free_place(self, sink: SinkSlot) -> int:
        """The number of a transaction that is at rest, or of a new one."""
        for place in sink.places:
            found = self._coordinator.find(name_of(sink.name, place))
            if found is None or is_over(found):
                return place
        if len(sink.places) >= ATTEMPTS_MAX:
            raise Overloaded(f"sink {sink.name} has {ATTEMPTS_MAX} attempts open")
        return max(sink.places, default=NEVER) + 1

    async def _store_new(
        self, slot: TransactionSlot, sink: str, batch: int, timeout_ms: int
    ) -> Transaction:
        found = slot.transaction
        if found is None or found.epoch + 1 >= EPOCHS:
            found = Transaction(slot.name, await self._new_writer(), NEVER, timeout_ms)
        return await self._coordinator.store(
            slot,
            found,
            epoch=found.epoch + 1,
            state=TransactionState.EMPTY,
            timeout_ms=timeout_ms,
            sink=sink,
            batch=batch,
        )

    def _check_open(self, sink: SinkSlot, batch: int, attempt: Attempt) -> None:
        writer, epoch = attempt
        found = self._coordinator.of_writer(writer)
        if (
            found is None
            or (found.sink, found.batch, found.epoch) != (sink.name, batch, epoch)
            or found.state is not TransactionState.ONGOING
        ):
            raise NotAllowed(
                f"batch {batch} of sink {sink.name} cannot be committed: what producer {writer} "
                "wrote for it was given up after its time-out, and is to be written again"
            )

    # -- decisions ----------------------------------------------------------------------------

    async def _carry_out(self, sink: SinkSlot) -> None:
        """Let each attempt of a committed batch have the decision of the record."""
        record = sink.record.value
        if record is not None:
            for name in self._names(sink):
                found = self._coordinator.find(name)
                if found is not None and is_open(found) and found.batch <= record.batch:
                    await self._decide(name, record)
        sink.carried_out = True

    async def _give_up(self, lost: Iterable[Transaction]) -> None:
        for found in lost:
            await self._decide(found.name, None)

    async def _decide(self, name: str, record: SinkRecord | None) -> None:
        """Commit an attempt if the record says so, else abort it."""
        async with self._coordinator.alone_with(name, settled=False) as slot:
            found = slot.transaction
            if found is None or not is_open(found):
                return
            wins = record is not None and attempt_of(found) in record.winners
            if found.state is TransactionState.ONGOING:
                await self._coordinator.decide(slot, commit=wins)
            else:
                aborted = TransactionState.ABORTED
                await self._coordinator.store(slot, found, state=aborted, epoch=found.epoch + 1)

    async def _look_after(self, sink: SinkSlot, now_ms: int, idle_ms_max: int) -> None:
        open_ones, silent_ms = self._open(sink), now_ms - sink.heard_ms
        if open_ones and silent_ms > max(found.timeout_ms for found in open_ones):
            log.info("sink %s: %d attempts given up", sink.name, len(open_ones))
            async with self._turn(sink.name):
                await self._give_up(self._open(sink))
        elif not open_ones and silent_ms > idle_ms_max:
            await self.forget(sink.name)
        elif open_ones and not sink.carried_out:
            async with self._turn(sink.name):
                pass
