"""Stores the members of groups in the background, so that they survive a restart.

Each group has one record, which is rewritten for each new assignment. Of the updates that arrive
while the record is being written, only the newest is written afterwards.

The group's coordinator owns the record (`core/cluster/owned_records.py`), and claims it when it
loads the group: the former coordinator can store no further generation, so there are never two
current ones.

Invariants: writes and deletions of one group happen one after the other, in the order of the calls;
each `done` is called once, after its value or a newer one is durable; an existing record that was
read or written here is held until it is deleted or lost.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.core.cluster.owned_records import OwnedRecords, RecordKind
from magnetar.core.cluster.ownership import Ownership
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Fenced, NotCoordinator
from magnetar.core.ports.ledger_store import Done
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.wire.kafka.groups.classic.group_record import AnyStoredGroup, decode, encode

log = logging.getLogger(__name__)

MEMBERS: Final = "/magnetar/kafka/members"
KIND: Final = RecordKind[AnyStoredGroup]("group", MEMBERS, encode, decode)


class PendingWrite:
    """The next write of one group's record, and the calls that wait for it."""

    __slots__ = ("dones", "kept")

    def __init__(self) -> None:
        self.kept: AnyStoredGroup | None = None
        """None to delete the record."""
        self.dones: list[Done] = []


class MemberStore:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, ownership: Ownership) -> None:
        self._records = OwnedRecords(metadata, KIND, ownership.group)
        self._pending: dict[str, PendingWrite] = {}
        self._busy: set[str] = set()
        """Groups whose record is being written."""
        self._wake = trio.Event()

    async def names(self) -> list[str]:
        """Groups with stored members that this broker coordinates."""
        return [name for name in await self._records.names() if await self._records.is_ours(name)]

    async def claim(self, group: str) -> AnyStoredGroup | None:
        """Claim the stored members of a group; None if there are none, or they are held already.

        `NotCoordinator` if another broker coordinates the group.
        """
        await self._records.check_owner(group)
        here = self._records.get(group) is not None
        if here or group in self._pending or group in self._busy:
            return None
        return (await self._records.claim(group)).value

    def release(self, group: str) -> None:
        """Another broker coordinates the group: release its record, and drop pending writes."""
        self._records.release(group)
        pending = self._pending.pop(group, None)
        if pending is not None:
            for done in pending.dones:
                done(self._records.elsewhere(group))

    def keep(self, group: str, kept: AnyStoredGroup | None, done: Done) -> None:
        """Store members, or delete them (None)."""
        pending = self._pending.setdefault(group, PendingWrite())
        pending.kept = kept
        pending.dones.append(done)
        self._wake.set()

    async def forget(self, group: str) -> None:
        """Delete the stored members of a group that has none left."""
        waiting = Completion[None]()
        self.keep(group, None, waiting.done)
        await waiting.result()

    async def run(self) -> None:
        """Write pending updates, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                for group in self._pending.keys() - self._busy:
                    self._busy.add(group)
                    nursery.start_soon(self._write_all, group)

    async def _write_all(self, group: str) -> None:
        while (pending := self._pending.pop(group, None)) is not None:
            error: BrokerError | None = None
            try:
                await self._write(group, pending.kept)
            except BrokerError as caught:
                error = caught
                log.warning("group %s: its members are not stored as they are: %s", group, error)
            for done in pending.dones:
                done(error)
            if isinstance(error, NotCoordinator):
                self.release(group)
        self._busy.discard(group)

    async def _write(self, group: str, kept: AnyStoredGroup | None) -> None:
        record = self._records.get(group)
        if record is None and kept is None:
            return  # a stored record belongs to another coordinator
        if record is None:
            # The first generation of a group is written after looking for a stored one.
            record = self._records.unread(group)
            with self._records.fencing(group):
                await record.load()
                if record.value is not None:
                    raise Fenced(f"another owner has created {record.path}")
        if kept is None:
            await self._records.delete(group, record)
        else:
            await self._records.write(group, record, kept)
