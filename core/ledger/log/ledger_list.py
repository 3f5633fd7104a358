"""The list of a log's ledgers, and what is stored with it: one record, which one owner writes.

Pulsar calls the record ManagedLedgerInfo. It holds the ledgers in order (`chain.py`), where the log
begins, the properties of the log, where it was terminated, and the ledgers that are to be deleted.
Its form is in `ledger_list_record.py`; what may leave it, and when, is decided by `removal.py` and
`trim.py`.

Invariants:
- No other code writes the chain's list of ledgers, its start, or the properties; a test
  holds that. (What is written into the last ledger counts in its segment, and in
  `chain.confirmed`: those belong to who writes it.)
- One change at a time. A change that could not be stored has not happened: all is as it was before.
- A ledger is in the list before anything is written into it, and is deleted after it has left.
- The record is written over the version that this owner knows. If another owner has written, `lost`
  is called, once, and every later change is refused with `Fenced`.

What a crash leaves: the list before a change, or after it. A write that failed may have happened
all the same (`core/cluster/owned_record.py`); the next one finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import trio

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ledger.log import ledger_list_record, recovery
from magnetar.core.ledger.log.chain import NOWHERE, Chain, Position, Segment
from magnetar.core.ledger.storage import Storage
from magnetar.core.ports.metadata_store import Versioned

CREATED: Final = "magnetar.created-ms"
"""Property of the log: when it came into being."""
CLEAN_TO: Final = "magnetar.clean-to"
"""Property of the log: messages with a lower index have been compacted."""


class LedgerList:
    """See the module's docstring."""

    __slots__ = (
        "_closed",
        "_lock",
        "_lost",
        "_name",
        "_next_index",
        "_record",
        "_storage",
        "_terminated",
        "chain",
        "doomed",
        "path",
        "properties",
    )

    def __init__(
        self,
        storage: Storage,
        name: str,
        next_index: Callable[[], int],
        lost: Callable[[Fenced], None],
    ) -> None:
        self.path = f"/managed-ledgers/{name}"
        self.chain = Chain()
        self.properties: Mapping[str, str] = {}
        """Of the whole log. Always the same mapping, which changes."""
        self.doomed: frozenset[int] = frozenset()
        """Ledgers that are not part of the log, or not any more, and are to be deleted."""
        self._storage = storage
        self._name = name
        self._next_index = next_index
        self._lost = lost
        self._terminated: Position | None = None
        self._closed = False
        self._record = OwnedRecord(storage.metadata, self.path, bytes, bytes)
        self._lock = trio.Lock()

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> recovery.RecoveredLog | None:
        """Read the list and find the end of the log; None for a log that is created by this.

        If the recovery changed the list, the caller stores it (`save`), because it knows the next
        index by then.
        """
        stored = await self._record.load()
        if stored is None:
            self._set({CREATED: str(self._storage.clock.wall_ms())})
            await self.save()
            return None
        versioned = Versioned(stored, self._record.version)
        found = await recovery.find(self._storage, self._name, versioned)
        self.chain.segments = found.segments
        self.chain.confirmed = found.confirmed
        self.chain.begins_at, self.chain.start = ledger_list_record.beginning_of(found.properties)
        self._set(found.properties)
        self._terminated = found.terminated
        return found

    def close(self) -> None:
        """Refuse changes: the log is unloaded, or another owner has taken it over."""
        self._closed = True

    async def delete(self) -> set[int]:
        """Delete the record; returns the ledgers that it named. `Fenced` if it is another's."""
        await self._record.delete()
        segments, self.chain.segments = self.chain.segments, []
        return {segment.stored_in for segment in segments} | self.doomed

    # -- storing ------------------------------------------------------------------------------

    async def save(self) -> None:
        """Store the list after a ledger has ended, or was found to have."""
        async with self._lock:
            await self._store()

    async def _store(self) -> None:
        if self._closed:
            raise Fenced("the topic is being unloaded")
        properties = dict(self.properties)
        data = ledger_list_record.encoded(
            self.chain, properties, self._next_index(), self._terminated, self.doomed
        )
        try:
            await self._record.write(data)
        except Fenced as error:
            reason = Fenced("another owner has taken this topic over")
            self._lost(reason)
            raise reason from error
        self._set(properties)

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Have all be as it was before, if the change cannot be stored."""
        chain = self.chain
        segments, begins_at, start = chain.segments, chain.begins_at, chain.start
        properties, doomed, terminated = dict(self.properties), self.doomed, self._terminated
        try:
            yield
        except BaseException:
            chain.segments, chain.begins_at, chain.start = segments, begins_at, start
            chain.rewritten += 1  # readers that used the old list meanwhile read again
            self._set(properties)
            self.doomed, self._terminated = doomed, terminated
            raise

    def _set(self, properties: Mapping[str, str]) -> None:
        assert isinstance(self.properties, dict)
        if properties != self.properties:
            self.properties.clear()
            self.properties.update(properties)

    # -- changes ------------------------------------------------------------------------------

    async def add(self, segment: Segment) -> None:
        """Name a new ledger, at the end, before anything is written into it."""
        async with self._lock:
            with self._undone_on_error():
                self.chain.segments = [*self.chain.segments, segment]
                await self._store()

    async def set_property(self, key: str, value: str | None) -> None:
        """Store a property of the whole log; None removes it."""
        async with self._lock:
            if value is None and key not in self.properties:
                return
            with self._undone_on_error():
                changed = {**self.properties, key: value or ""}
                if value is None:
                    del changed[key]
                self._set(changed)
                await self._store()

    async def terminate(self, position: Position) -> None:
        """Nothing follows that position."""
        async with self._lock:
            with self._undone_on_error():
                self._terminated = position
                await self._store()

    async def remove(self, ledger_ids: Iterable[int]) -> tuple[int, set[int]]:
        """Ledgers at the front that have ended leave the list.

        Returns how many, and the ledgers that hold nothing of the log any more.
        """
        chain, leaving = self.chain, set(ledger_ids)
        async with self._lock:
            gone = [one for one in chain.segments if one.ledger_id in leaving and one.closed_ms]
            if not gone:
                return 0, set()
            with self._undone_on_error():
                chain.segments = [one for one in chain.segments if one not in gone]
                left = next((one.first_index for one in chain.segments), self._next_index())
                if chain.begins_at <= left:
                    chain.begins_at = NOWHERE
                await self._store()
            return len(gone), self._unnamed(gone)

    async def begin_at(
        self, index: int, position: Position, first_index: Callable[[], int]
    ) -> set[int]:
        """The log begins with that message, in the entry at `position`; it never goes back.

        `first_index` says with which it begins. Returns the ledgers that hold nothing of the log
        any more.
        """
        chain = self.chain
        async with self._lock:
            if index <= first_index():
                return set()
            gone = [one for one in chain.segments if one.closed_ms and _end_of(one) < position]
            with self._undone_on_error():
                chain.segments = [one for one in chain.segments if one not in gone]
                chain.begins_at, chain.start = index, max(chain.start, position)
                await self._store()
            return self._unnamed(gone)

    async def doom(self, ledger_id: int) -> None:
        """A ledger that is not part of the log yet: the next owner of the log deletes it."""
        async with self._lock:
            with self._undone_on_error():
                self.doomed |= {ledger_id}
                await self._store()

    def spare(self, ledger_id: int) -> None:
        """It is deleted; the next change stores that."""
        self.doomed -= {ledger_id}

    async def replace(
        self,
        instead: Mapping[int, Segment | None],
        clean_to: int,
        first_index: Callable[[], int],
        replaced: Callable[[], None],
    ) -> frozenset[int]:
        """Of each of these ledgers, only that is left, and the log begins where it did.

        `replaced` is called as soon as that is so. Ledgers that are not listed any more have gone
        meanwhile, and what was left of them goes too. Returns the ledgers that are to be deleted
        now; if that is not done, the next owner of the log does it.
        """
        chain = self.chain
        async with self._lock:
            with self._undone_on_error():
                if chain.begins_at == NOWHERE:
                    chain.begins_at = first_index()
                listed = [(instead.get(one.ledger_id, one), one) for one in chain.segments]
                chain.segments = [new for new, _ in listed if new is not None]
                chain.rewritten += 1
                self._set({**self.properties, CLEAN_TO: str(clean_to)})
                self.doomed |= self._unnamed(one for new, one in listed if new is not one)
                self.doomed -= {one.stored_in for one in chain.segments}
                await self._store()
            replaced()
            gone, self.doomed = self.doomed, frozenset()
            return gone

    def _unnamed(self, gone: Iterable[Segment]) -> set[int]:
        """The ledgers that held these, and hold nothing that is still in the list."""
        return {one.stored_in for one in gone} - {one.stored_in for one in self.chain.segments}


def _end_of(segment: Segment) -> Position:
    return (segment.ledger_id, segment.entries - 1)
