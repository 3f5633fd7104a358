"""Stores a cursor: in a znode, and in the small ledger of snapshots that the znode names.

The znode is Pulsar's ManagedCursorInfo. After a clean close it names no ledger (-1) and holds the
state itself (`ManagedCursorImpl.persistPositionMetaStore` of 4.2). The cursor decides when to save,
and what (`cursor.py`). The znode is an owned record (`core/cluster/owned_record.py`): a broker that
finds it written by another owner gives up the whole topic.

Invariants: the znode names at most one ledger, and any other that was created is deleted; a write
replaces nothing that another owner has written; an owner that has lost the log writes nothing.
"""

from __future__ import annotations

import logging
from urllib.parse import quote

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    NotFound,
)
from magnetar.core.ledger import formats
from magnetar.core.ledger.ledger_owner import delete_own, open_own, properties_of
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.storage import Storage
from magnetar.core.ledger.write_failure_log import log_name
from magnetar.core.ports.ledger_store import LedgerWriter

log = logging.getLogger(__name__)


class CursorRecord:
    """See the module's docstring."""

    __slots__ = ("_cursor", "_ledger", "_storage", "_znode", "ledger_id", "switched_ms")

    def __init__(self, storage: Storage, ledger: ManagedLedger, cursor: str) -> None:
        self.ledger_id = -1
        """The ledger that the znode names, -1 for none."""
        self.switched_ms = 0
        """When the znode last named another ledger; 0 if not since it was opened."""
        self._storage = storage
        self._ledger = ledger
        self._cursor = cursor
        path = f"{ledger.path}/{quote(cursor, safe='')}"
        self._znode = OwnedRecord(storage.metadata, path, bytes, bytes)

    @property
    def path(self) -> str:
        """The path of the znode."""
        return self._znode.path

    async def create(self, value: bytes) -> None:
        """Create the znode; `Fenced` if another owner has created it."""
        self._check_owned()
        try:
            await self._znode.create(value)
        except Fenced as error:
            raise self._fenced() from error

    async def find(self) -> formats.ManagedCursorInfo:
        """Read the znode; `NotFound` if there is none."""
        found = await self._znode.load()
        if found is None:
            raise NotFound(f"no cursor {self._cursor} of {log_name(self._ledger.name)}")
        info = formats.decode_cursor(found)
        self.ledger_id = max(info.cursors_ledger_id, -1)
        return info

    async def last_snapshot(self) -> formats.CursorSnapshot | None:
        """The newest readable snapshot; None if there is none, and the znode's own state counts."""
        if self.ledger_id < 0:
            return None
        topic = log_name(self._ledger.name)
        try:
            reader = await open_own(self._storage.ledgers, self.ledger_id, self._ledger.name)
            last = reader.last_confirmed
            while last >= 0:
                try:
                    (entry,) = await reader.read(last, last, 1)
                    return formats.decode_snapshot(entry)
                except Corrupted as error:
                    first, _ = await reader.damage(last)
                    if first == 0:
                        raise
                    log.error("%s: cursor %s goes back to where it was saved before: %s",
                              topic, self._cursor, error)  # fmt: skip
                    last = first - 1
        except (LedgerNotFound, EntryNotFound, Corrupted) as error:
            log.error("%s: cursor %s goes back to its znode: %s", topic, self._cursor, error)
        return None

    async def begin_ledger(self) -> LedgerWriter:
        """Create a ledger for snapshots, which the znode does not name yet."""
        properties = {**properties_of(self._ledger.name), "pulsar/cursor": self._cursor.encode()}
        return await self._storage.ledgers.create(properties, self._ledger.rules.quorums)

    async def name(self, ledger_id: int, value: bytes) -> None:
        """Write the znode, which names that ledger (-1: none), and delete the one named before.

        `Fenced` if another owner has written it; then the whole log is given up.
        """
        try:
            self._check_owned()
            await self._znode.write(value)
        except Fenced as error:
            await self._drop(ledger_id)
            raise self._fenced() from error
        except BrokerError:
            await self._drop(ledger_id)
            raise
        before, self.ledger_id = self.ledger_id, ledger_id
        self.switched_ms = self._storage.clock.wall_ms()
        await self._drop(before)

    async def delete(self) -> None:
        """Delete the znode, then the ledger, or what an earlier attempt has left of them."""
        self._check_owned()
        try:
            await self._znode.delete()
        except Fenced as error:
            raise self._fenced() from error
        ledger_id, self.ledger_id = self.ledger_id, -1
        await self._drop(ledger_id)

    def _check_owned(self) -> None:
        """Raise `Fenced` if the log is lost: the new owner may not have written the znode yet."""
        if self._ledger.fenced:
            raise Fenced("another owner has taken this topic over")

    def _fenced(self) -> Fenced:
        """Give up the topic, because another owner has written the znode; returns the error."""
        reason = Fenced("another owner has taken this subscription over")
        self._ledger.fence(reason)
        return reason

    async def _drop(self, ledger_id: int) -> None:
        """Delete a ledger that nothing names; if that fails, it stays and takes space."""
        if ledger_id >= 0:
            await delete_own(self._storage.ledgers, ledger_id, self._ledger.name)
