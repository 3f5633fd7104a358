"""Where a cursor is stored: a znode, and the small ledger of snapshots that it names.

A znode that names no ledger (-1) holds the state itself, after a clean close. When to save, and
what, is the cursor's affair (`cursor.py`). The znode is a record that the owner of the topic holds
(`core/cluster/owned_record.py`): who finds it written by another owner lets the whole topic go.

Invariants: at most one ledger is named by the znode, and any other that was created is deleted;
what another owner has written is never written over.
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
        """The ledger that the znode names."""
        self.switched_ms = 0
        """When it last named another; 0 for not since it was opened."""
        self._storage = storage
        self._ledger = ledger
        self._cursor = cursor
        path = f"{ledger.path}/{quote(cursor, safe='')}"
        self._znode = OwnedRecord(storage.metadata, path, bytes, bytes)

    @property
    def path(self) -> str:
        """Of the znode."""
        return self._znode.path

    async def create(self, value: bytes) -> None:
        """Write a znode that was not there; `Fenced` if another owner has written it."""
        self._check_owned()
        try:
            await self._znode.create(value)
        except Fenced as error:
            raise self._let_go() from error

    async def find(self) -> formats.ManagedCursorInfo:
        """What the znode says; `NotFound` without one."""
        found = await self._znode.load()
        if found is None:
            raise NotFound(f"no cursor {self._cursor} of {log_name(self._ledger.name)}")
        info = formats.decode_cursor(found)
        self.ledger_id = max(info.cursors_ledger_id, -1)
        return info

    async def last_snapshot(self) -> formats.CursorSnapshot | None:
        """The newest that can be read. None if there is none: then the znode's own is good."""
        if self.ledger_id < 0:
            return None
        topic = log_name(self._ledger.name)
        try:
            reader = await self._storage.ledgers.open(self.ledger_id, recover=True)
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
        """A fresh ledger for snapshots, that nothing names yet."""
        return await self._storage.ledgers.create(
            {
                "application": b"pulsar",
                "component": b"managed-ledger",
                "pulsar/managed-ledger": self._ledger.name.encode(),
                "pulsar/cursor": self._cursor.encode(),
            }
        )

    async def name(self, ledger_id: int, value: bytes) -> None:
        """Write the znode, which names that ledger (-1: none), and drop the one it named before.

        `Fenced` if another owner has written it: then the whole log is let go.
        """
        try:
            self._check_owned()
            await self._znode.write(value)
        except Fenced as error:
            await self._drop(ledger_id)
            raise self._let_go() from error
        except BrokerError:
            await self._drop(ledger_id)
            raise
        before, self.ledger_id = self.ledger_id, ledger_id
        self.switched_ms = self._storage.clock.wall_ms()
        await self._drop(before)

    async def delete(self) -> None:
        """Remove the znode, then the ledger, or what an earlier attempt has left of them."""
        self._check_owned()
        try:
            await self._znode.delete()
        except Fenced as error:
            raise self._let_go() from error
        ledger_id, self.ledger_id = self.ledger_id, -1
        await self._drop(ledger_id)

    def _check_owned(self) -> None:
        """The new owner may not have written the znode yet, so its version alone fences nobody."""
        if self._ledger.fenced:
            raise Fenced("another owner has taken this topic over")

    def _let_go(self) -> Fenced:
        """Another owner has written the znode, so the topic is its; returns what to raise."""
        reason = Fenced("another owner has taken this subscription over")
        self._ledger.let_go(reason)
        return reason

    async def _drop(self, ledger_id: int) -> None:
        """It is no longer referenced: at worst it stays and takes space."""
        if ledger_id < 0:
            return
        try:
            await self._storage.ledgers.delete(ledger_id)
        except BrokerError as error:
            log.warning(
                "%s: ledger %d is left over: %s", log_name(self._ledger.name), ledger_id, error
            )
