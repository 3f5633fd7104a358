"""Owned records of one kind, by name, in one folder of the metadata store.

The owner of a name (`ownership.py`) has its record (`owned_record.py`) here from the first claim
until it deletes it, loses it, or releases it, and need not read it again meanwhile.

Invariant: a caller that finds that another broker has written a record gets `NotCoordinator`, and
the record is here no more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar
from urllib.parse import quote, unquote

from msgspec import MsgspecError, Struct

from magnetar.core.cluster.owned_record import OwnedRecord, RecordState
from magnetar.core.cluster.ownership import Peer
from magnetar.core.kernel.errors import Corrupted, Fenced, NotCoordinator, NotFound
from magnetar.core.ports.metadata_store import MetadataStore

Value = TypeVar("Value")


class RecordKind(Struct, Generic[Value], frozen=True):
    """The kind of the records in a folder."""

    name: str
    """The name in messages: `group`, `transaction`."""
    folder: str
    encode: Callable[[Value], bytes]
    decode: Callable[[bytes], Value]


class OwnedRecords(Generic[Value]):
    """See the module's docstring."""

    def __init__(
        self,
        metadata: MetadataStore,
        kind: RecordKind[Value],
        owner: Callable[[str], Awaitable[Peer | None]],
    ) -> None:
        """`owner` is a method of `Ownership`."""
        self._metadata = metadata
        self._kind = kind
        self._owner = owner
        self._owned: dict[str, OwnedRecord[Value]] = {}
        """Records that exist, or may exist: their last write may have happened."""

    async def names(self) -> list[str]:
        """All names with a record, owned here or elsewhere."""
        return [unquote(name) for name in await self._metadata.children(self._kind.folder)]

    async def is_ours(self, name: str) -> bool:
        return await self._owner(name) is None

    async def check_owner(self, name: str) -> None:
        """Raise `NotCoordinator` unless this broker owns the name."""
        if not await self.is_ours(name):
            raise self.elsewhere(name)

    def elsewhere(self, name: str) -> NotCoordinator:
        """The error for a name that another broker owns."""
        return NotCoordinator(f"another broker coordinates {self._kind.name} {name}")

    # -- reading ------------------------------------------------------------------------------

    def get(self, name: str) -> OwnedRecord[Value] | None:
        """The record, if this broker owns it, whether or not its last write is known to have
        happened. Plain call.
        """
        return self._owned.get(name)

    def value_of(self, name: str) -> Value | None:
        """The value that is certainly stored, of a record owned here. Plain call."""
        record = self._owned.get(name)
        certain = record is not None and record.state is RecordState.HELD
        return record.value if record is not None and certain else None

    async def find(self, name: str) -> Value | None:
        """Read the stored value, which may be another owner's; None for no record."""
        value = self.value_of(name)
        if value is not None:
            return value
        found = await self._metadata.get(self._path(name))
        return None if found is None else self._decoded(name, found.value)

    def _decoded(self, name: str, data: bytes) -> Value:
        try:
            return self._kind.decode(data)
        except (MsgspecError, ValueError) as error:
            what = f"{self._kind.name} {name}"
            raise Corrupted(f"the record of {what} cannot be read: {error}") from error

    async def discard_damaged(self, name: str) -> bool:
        """Delete a record if it cannot be read; returns whether it did. `BadVersion` if somebody
        writes it meanwhile.
        """
        await self.check_owner(name)
        found = await self._metadata.get(self._path(name))
        if found is None:
            return False
        try:
            self._decoded(name, found.value)
        except Corrupted:
            with suppress(NotFound):  # deleted already
                await self._metadata.delete(self._path(name), found.version)
            return True
        return False

    # -- owning -------------------------------------------------------------------------------

    def unread(self, name: str) -> OwnedRecord[Value]:
        """A new record object, neither read nor claimed."""
        kind = self._kind
        return OwnedRecord(self._metadata, self._path(name), kind.encode, kind.decode)

    async def claim(self, name: str) -> OwnedRecord[Value]:
        """Claim the record of a name, which may not exist; its former owner is fenced."""
        record = self._owned.get(name)
        with self.fencing(name):
            if record is not None:
                await record.settle()
            else:
                await self.check_owner(name)
                record = self.unread(name)
                await record.claim()
        self._own(name, record)
        return record

    async def write(self, name: str, record: OwnedRecord[Value], value: Value) -> None:
        self._owned[name] = record  # also if this fails: the write may have happened
        with self.fencing(name):
            await record.write(value)

    async def delete(self, name: str, record: OwnedRecord[Value]) -> None:
        """Delete a record, if it exists."""
        with self.fencing(name):
            await record.delete()
        self.release(name)

    async def verify(self, name: str) -> None:
        """Raise `NotCoordinator` if another broker has written a record that is owned here."""
        record = self._owned.get(name)
        if record is not None:
            with self.fencing(name):
                await record.verify()

    def release(self, name: str) -> None:
        """Another broker owns the name, or its record is deleted."""
        self._owned.pop(name, None)

    def _own(self, name: str, record: OwnedRecord[Value]) -> None:
        if record.value is None:
            self.release(name)
        else:
            self._owned[name] = record

    @contextmanager
    def fencing(self, name: str) -> Iterator[None]:
        """Release a fenced record, and raise `NotCoordinator` instead of `Fenced`."""
        try:
            yield
        except Fenced as error:
            self.release(name)
            raise self.elsewhere(name) from error

    def _path(self, name: str) -> str:
        return f"{self._kind.folder}/{quote(name, safe='')}"
