"""Who is in which transaction, and that each ends the same way everywhere. Durable.

Ending one: the decision is stored, and answered; then every log of it gets a marker, and promises
are kept if it was committed; then it is stored that all is done. After a crash in between that is
done again: a second marker, or a promise kept twice, changes nothing. Nothing new comes into a
transaction that is decided: whoever wants to begin the next one waits.

Invariants: nothing of a transaction is answered before it is stored; of one name, things happen one
at a time; a decision is never changed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
import trio
from msgspec.structs import replace

from core.errors import BrokerError, NotFound, TopicNotFound
from core.names import TopicName
from core.topic.topic import Topic
from core.transactions.transaction import AT_REST, Promise, State, Transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from core.broker import Broker

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 5.0
SWEEP_SECONDS: Final = 1.0
MARKED_AT_ONCE: Final = 100
"""Logs of one transaction."""

_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.Decoder(Transaction).decode

Keep = Callable[[Iterable[Promise]], Awaitable[None]]
"""Keeps promises; raises `BrokerError` if that is to be tried again."""


class Place:
    """A name, and its transaction if there is one."""

    __slots__ = ("lock", "logs", "name", "rest", "transaction")

    def __init__(self, name: str, transaction: Transaction | None = None) -> None:
        self.name = name
        self.transaction = transaction
        self.logs: frozenset[str] = frozenset(transaction.logs if transaction is not None else ())
        self.lock = trio.Lock()
        self.rest = trio.Event()
        """Set while no decision is on its way to the logs."""
        self.rest.set()


class Coordinator:
    """See the module's docstring."""

    def __init__(self, broker: Broker, path: str, keep: Keep) -> None:
        self._broker = broker
        self._path = path
        self._keep = keep
        self._places: dict[str, Place] = {}
        self._writers: dict[int, Place] = {}

    async def open(self) -> None:
        """Know what was stored; what was decided is done."""
        metadata = self._broker.metadata
        for name in await metadata.children(self._path):
            stored = await metadata.get(f"{self._path}/{name}")
            if stored is not None:
                found = _decode(stored.value)
                place = self._places[found.name] = Place(found.name, found)
                self._writers[found.writer] = place
                self._finish_later(place)

    async def run(self, idle_ms_max: int) -> None:
        """Until cancelled: end what takes too long, forget names that nobody has used for long."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now_ms = self._broker.clock.wall_ms()
            for place in list(self._places.values()):
                found = place.transaction
                if found is None or found.decided:
                    continue
                try:
                    idle_ms = now_ms - found.changed_ms
                    if found.state is State.ONGOING and found.expires_ms() < now_ms:
                        await self._time_out(place)
                    elif found.state is not State.ONGOING and idle_ms > idle_ms_max:
                        await self._forget(place)
                except BrokerError as error:
                    log.warning("transaction %s: %s", found.name, error)

    # -- questions ----------------------------------------------------------------------------

    def find(self, name: str) -> Transaction | None:
        place = self._places.get(name)
        return place.transaction if place is not None else None

    def of_writer(self, writer: int) -> Transaction | None:
        """Whose number that is. Plain call: asked for each batch."""
        place = self._writers.get(writer)
        return place.transaction if place is not None else None

    def admits(self, writer: int, epoch: int, log: str) -> bool:
        """Whether that writer may write to that log, in a transaction that goes on. Plain call."""
        place = self._writers.get(writer)
        if place is None or place.transaction is None:
            return False
        found = place.transaction
        return found.epoch == epoch and found.state is State.ONGOING and log in place.logs

    def all(self) -> Iterator[Transaction]:
        for place in self._places.values():
            if place.transaction is not None:
                yield place.transaction

    # -- changes ------------------------------------------------------------------------------

    @asynccontextmanager
    async def alone_with(self, name: str, *, settled: bool) -> AsyncIterator[Place]:
        """Nobody else changes that transaction; `settled` waits until a decision is everywhere."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = Place(name)
        try:
            await self._lock(place, settled=settled)
            try:
                yield place
            finally:
                place.lock.release()
        finally:
            unused = place.transaction is None and not place.lock.statistics().tasks_waiting
            if unused and not place.lock.locked() and self._places.get(name) is place:
                del self._places[name]

    @staticmethod
    async def _lock(place: Place, *, settled: bool) -> None:
        while True:
            if settled:
                await place.rest.wait()
            await place.lock.acquire()
            if not settled or place.rest.is_set():
                return
            place.lock.release()

    async def store(self, place: Place, found: Transaction, **changes: Any) -> Transaction:
        """What it is from now on, stored."""
        changed = replace(found, changed_ms=self._broker.clock.wall_ms(), **changes)
        await self._broker.metadata.put(self._where(place), _encode(changed))
        before = place.transaction
        if before is not None and before.writer != changed.writer:
            self._writers.pop(before.writer, None)
        place.transaction, place.logs = changed, frozenset(changed.logs)
        self._writers[changed.writer] = place
        return changed

    async def extend(
        self,
        place: Place,
        *,
        logs: Iterable[str] = (),
        parties: Iterable[str] = (),
        promises: Iterable[Promise] = (),
    ) -> None:
        """More is in it; the first of it begins it."""
        found = place.transaction
        assert found is not None, "a transaction begins with its writer"
        assert not found.decided, "nothing new comes into what is decided"
        if found.state is not State.ONGOING:
            now_ms = self._broker.clock.wall_ms()
            found = replace(found, state=State.ONGOING, began_ms=now_ms)
        await self.store(
            place,
            found,
            logs=tuple(dict.fromkeys((*found.logs, *logs))),
            parties=tuple(dict.fromkeys((*found.parties, *parties))),
            promises=(*found.promises, *promises),
        )

    async def decide(self, place: Place, *, commit: bool, epoch: int | None = None) -> None:
        """It is decided when this returns; the rest happens later."""
        found = place.transaction
        assert found is not None, "a transaction begins with its writer"
        assert found.state is State.ONGOING, "only what goes on is decided"
        state = State.COMMITTING if commit else State.ABORTING
        await self.store(place, found, state=state, epoch=found.epoch if epoch is None else epoch)
        self._finish_later(place)

    async def _time_out(self, place: Place) -> None:
        async with self.alone_with(place.name, settled=False):
            found = place.transaction
            if found is not None and found.state is State.ONGOING:
                log.info("transaction %s: aborted after %d ms", found.name, found.timeout_ms)
                # whoever is still at it is not to go on
                await self.decide(place, commit=False, epoch=found.epoch + 1)

    async def _forget(self, place: Place) -> None:
        async with self.alone_with(place.name, settled=True):
            found = place.transaction
            if found is None or found.state is State.ONGOING:
                return
            try:
                await self._broker.metadata.delete(self._where(place))
            except NotFound:
                log.debug("transaction %s was forgotten already", found.name)
            place.transaction = None
            self._writers.pop(found.writer, None)

    def _where(self, place: Place) -> str:
        return f"{self._path}/{quote(place.name, safe='')}"

    # -- carrying out -------------------------------------------------------------------------

    def _finish_later(self, place: Place) -> None:
        found = place.transaction
        if found is not None and found.decided:
            place.rest = trio.Event()
            self._broker.spawn(self._finish, place)

    async def _finish(self, place: Place) -> None:
        """Tell every log, keep every promise, and note that it is done."""
        found = place.transaction
        assert found is not None
        limiter = trio.CapacityLimiter(MARKED_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for name in found.logs:
                nursery.start_soon(self._mark, found, TopicName.parse(name), limiter)
        if found.state is State.COMMITTING and found.promises:
            await _insist(found.name, lambda: self._keep(found.promises))
        await _insist(
            found.name,
            lambda: self.store(
                place, found, state=AT_REST[found.state], logs=(), parties=(), promises=()
            ),
        )
        place.rest.set()

    async def _mark(
        self, found: Transaction, name: TopicName, limiter: trio.CapacityLimiter
    ) -> None:
        async def mark() -> None:
            try:
                topic = await self._broker.topic(name, create=False)
            except TopicNotFound:
                return  # deleted, and with it what was written
            if isinstance(topic, Topic):
                commit = found.state is State.COMMITTING
                await topic.end_transaction(found.writer, found.epoch, committed=commit)

        async with limiter:
            await _insist(found.name, mark)


async def _insist(name: str, action: Callable[[], Awaitable[object]]) -> None:
    """Until it is done: what is decided is decided."""
    pause = RETRY_SECONDS
    while True:
        try:
            await action()
        except BrokerError as error:
            log.warning("transaction %s: tried again, %s", name, error)
            await trio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)
        else:
            return
