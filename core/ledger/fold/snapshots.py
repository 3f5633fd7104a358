"""Stores the snapshots of a fold: in a record of the metadata store, or in a cursor.

A record is written as a whole, so it suits snapshots of up to some hundred kilobytes (ZooKeeper's
limit is 1 MB, `jute.maxbuffer`). A cursor has a small ledger of its own. Its position properties
are the numbers of the snapshot, as Pulsar stores sequence ids (PIP-6, `MessageDeduplication.java`
of 4.2), and its mark-delete position is the position of the snapshot.

Invariants: a write is durable when it returns; it replaces nothing that another owner has written,
but raises `Fenced` and gives up the log.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Generic

import msgspec

from magnetar.core.cluster.owned_record import OwnedRecord, RecordState
from magnetar.core.kernel.errors import Corrupted, Fenced, NotFound
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.fold.fold import Image, Snapshot
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.storage import Storage

Numbers = dict[str, int]


class MetadataSnapshots(Generic[Image]):
    """Snapshots in one record of the metadata store, compressed."""

    def __init__(
        self,
        storage: Storage,
        ledger: ManagedLedger,
        path: str,
        encode: Callable[[Snapshot[Image]], bytes],
        decode: Callable[[bytes], Snapshot[Image]],
    ) -> None:
        self._record = OwnedRecord(storage.metadata, path, bytes, bytes)
        self._ledger = ledger
        self._encode = encode
        self._decode = decode

    async def read(self) -> Snapshot[Image] | None:
        # Claimed: a last snapshot of the former owner would fence this one (`Fold.close`).
        stored = await self._record.claim()
        if stored is None:
            return None
        try:
            return self._decode(zlib.decompress(stored))
        except (zlib.error, msgspec.DecodeError) as error:
            raise Corrupted(f"{self._record.path} cannot be decoded: {error}") from error

    async def write(self, snapshot: Snapshot[Image]) -> None:
        data = zlib.compress(self._encode(snapshot))
        try:
            if self._record.state is RecordState.UNREAD:
                await self._record.claim()
            await self._record.write(data)
        except Fenced as error:
            reason = Fenced("another owner has taken this topic over")
            self._ledger.fence(reason)
            raise reason from error

    async def close(self, snapshot: Snapshot[Image] | None) -> None:
        if snapshot is not None:
            await self.write(snapshot)

    async def delete(self) -> None:
        if self._record.state is RecordState.UNREAD:
            await self._record.load()
        await self._record.delete()


class CursorSnapshots:
    """Snapshots in a cursor of the log, which is deleted with the log."""

    def __init__(self, storage: Storage, ledger: ManagedLedger, name: str) -> None:
        self._cursor = Cursor(storage, ledger, name, START, durable=True)
        self._read = self._there = False

    async def read(self) -> Snapshot[Numbers] | None:
        cursor = self._cursor
        self._read = True
        try:
            await cursor.open()
        except NotFound:
            return None
        except Corrupted:
            self._there = True  # the next write replaces it
            raise
        self._there = True
        return Snapshot(cursor.mark_delete, dict(cursor.position_properties))

    async def write(self, snapshot: Snapshot[Numbers]) -> None:
        await self._find()
        self._cursor.set_position_properties(snapshot.image)
        if self._there:
            self._cursor.reset(snapshot.position)
            await self._cursor.saved()
        else:
            # not `reset`, after which the broker would save a cursor that does not exist yet
            self._cursor.acks.reset(snapshot.position)
            self._there = True  # a creation that fails may have happened: `saved` settles that
            await self._cursor.create()

    async def close(self, snapshot: Snapshot[Numbers] | None) -> None:
        """Store the snapshot in the znode itself, so that opening again costs one read."""
        if snapshot is not None:
            self._cursor.set_position_properties(snapshot.image)
            self._cursor.reset(snapshot.position)
        await self._cursor.close()

    async def delete(self) -> None:
        await self._find()
        if self._there:
            await self._cursor.delete()
            self._there = False

    async def _find(self) -> None:
        """Read a cursor that may exist and was not opened."""
        if not self._read:
            await self.read()
