"""The records of groups: what is stored of each, besides its offsets.

Offsets are cursors of their topics. A record holds the rest: the group's protocol, and since when
the group has been empty, from which its offsets age.

The group's coordinator owns its record (`core/cluster/owned_record.py`). A coordinator that finds
the record written by another one forgets it and raises `NotCoordinator`.

Invariant: a group has a record before anything is committed, and until all its offsets are deleted.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio
from msgspec import Struct

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.cluster.ownership import ALONE, Ownership
from magnetar.core.kernel.errors import Corrupted, Fenced, NotCoordinator
from magnetar.core.ports.metadata_store import MetadataStore

GROUPS: Final = "/magnetar/kafka/groups"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class GroupRecord(Struct, frozen=True, omit_defaults=True):
    """See the module's docstring."""

    kind: str = CLASSIC
    protocol_type: str = ""
    """Empty as long as no member has ever joined."""
    empty_since_ms: int = 0
    """0 while the group has members."""
    ages_early: bool = False
    """A client has stated the retention of an offset itself."""


_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(GroupRecord).decode


class GroupRecords:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, ownership: Ownership = ALONE) -> None:
        self._metadata = metadata
        self._ownership = ownership
        self._held: dict[str, OwnedRecord[GroupRecord]] = {}
        """Records that exist."""
        self._lock = trio.Lock()

    async def names(self) -> list[str]:
        """All groups that have committed something."""
        return sorted(unquote(name) for name in await self._metadata.children(GROUPS))

    async def find(self, group: str) -> GroupRecord | None:
        held = self._held.get(group)
        if held is not None:
            return held.value
        found = await self._metadata.get(_path(group))
        try:
            return None if found is None else _decode(found.value)
        except msgspec.MsgspecError as error:
            raise Corrupted(f"the record of group {group} cannot be read: {error}") from error

    async def ensure(self, group: str, first: GroupRecord) -> None:
        """Create the record `first`, unless the group has one."""
        if group in self._held and not first.ages_early:
            return
        async with self._lock:
            record = await self._loaded(group)
            if record.value is None:
                await self._write(group, record, first)
            elif first.ages_early and not record.value.ages_early:
                await self._write(
                    group, record, msgspec.structs.replace(record.value, ages_early=True)
                )
            else:
                self._held[group] = record

    async def note(self, group: str, kind: str, protocol_type: str, empty_since_ms: int) -> None:
        """Store that the group has members (0) or none any more, if it has a record."""
        async with self._lock:
            record = await self._loaded(group)
            if record.value is None:
                return
            noted = msgspec.structs.replace(
                record.value, kind=kind, protocol_type=protocol_type, empty_since_ms=empty_since_ms
            )
            if noted != record.value:
                await self._write(group, record, noted)
            else:
                self._held[group] = record

    async def delete(self, group: str) -> None:
        """Delete the record, if there is one. An `ensure` that comes meanwhile writes it anew."""
        self._held.pop(group, None)
        async with self._lock:
            self._held.pop(group, None)
            record = await self._loaded(group)
            try:
                await record.delete()
            except Fenced as error:
                raise _not_coordinator(group) from error

    async def _loaded(self, group: str) -> OwnedRecord[GroupRecord]:
        """The record of a group, there or not, claimed: a former coordinator, which may take the
        group for empty, can change it no more. `NotCoordinator` if the group is another broker's.
        """
        held = self._held.get(group)
        if held is None:
            if await self._ownership.group(group) is not None:
                raise _not_coordinator(group)
            held = OwnedRecord(self._metadata, _path(group), _encode, _decode)
            try:
                await held.claim()
            except Fenced as error:
                raise _not_coordinator(group) from error
        return held

    async def _write(
        self, group: str, record: OwnedRecord[GroupRecord], value: GroupRecord
    ) -> None:
        self._held.pop(group, None)  # until it is known what is stored
        try:
            await record.write(value)
        except Fenced as error:
            raise _not_coordinator(group) from error
        self._held[group] = record


def _not_coordinator(group: str) -> NotCoordinator:
    return NotCoordinator(f"another broker coordinates group {group}")


def _path(group: str) -> str:
    return f"{GROUPS}/{quote(group, safe='')}"
