"""The records of groups: the stored state of a group besides its offsets and members.

Offsets are cursors of their topics. A record has the group's protocol, and since when the group has
been empty, from which its offsets age.

The group's coordinator owns its record (`core/cluster/owned_records.py`), and claims it before it
changes or deletes anything of the group. A coordinator that finds the record written by another one
forgets it and raises `NotCoordinator`.

Invariant: a group has a record before anything is committed, and until all its offsets are deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec
import trio
from msgspec import Struct

from magnetar.core.cluster.owned_records import OwnedRecords, RecordKind
from magnetar.core.cluster.ownership import ALONE, Ownership
from magnetar.core.ports.metadata_store import MetadataStore

GROUPS: Final = "/magnetar/kafka/groups"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class GroupRecord(Struct, frozen=True, omit_defaults=True):
    """See the module's docstring."""

    kind: str = CLASSIC
    protocol_type: str = ""
    """Empty if no member has ever joined."""
    empty_since_ms: int = 0
    """0 while the group has members."""
    ages_early: bool = False
    """Whether a client has set the retention of an offset itself."""


KIND: Final = RecordKind(
    "group", GROUPS, msgspec.json.encode, msgspec.json.Decoder(GroupRecord).decode
)


class GroupRecords:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, ownership: Ownership = ALONE) -> None:
        self._records = OwnedRecords(metadata, KIND, ownership.group)
        self._lock = trio.Lock()

    async def names(self) -> list[str]:
        """All groups with committed offsets, also those of other coordinators."""
        return sorted(await self._records.names())

    async def is_ours(self, group: str) -> bool:
        """Whether this broker coordinates the group."""
        return await self._records.is_ours(group)

    async def find(self, group: str) -> GroupRecord | None:
        """The stored record of a group that any broker may coordinate: for descriptions."""
        return await self._records.find(group)

    async def claim(self, group: str) -> GroupRecord | None:
        """Claim the record before anything of the group is deleted. This fences a former
        coordinator, which may know of members.
        """
        async with self._lock:
            return (await self._records.claim(group)).value

    async def verify(self, group: str) -> None:
        """Raise `NotCoordinator` if another coordinator has claimed the group since."""
        async with self._lock:
            await self._records.verify(group)

    def release(self, group: str) -> None:
        """Another broker coordinates the group: drop what is known of it."""
        self._records.release(group)

    async def ensure(self, group: str, first: GroupRecord) -> None:
        """Create the record `first`, unless the group has one."""
        if self._records.value_of(group) is not None and not first.ages_early:
            return
        async with self._lock:
            record = await self._records.claim(group)
            if record.value is None:
                await self._records.write(group, record, first)
            elif first.ages_early and not record.value.ages_early:
                aging = msgspec.structs.replace(record.value, ages_early=True)
                await self._records.write(group, record, aging)

    async def note(self, group: str, kind: str, protocol_type: str, empty_since_ms: int) -> None:
        """Store that the group has members (0), or since when it has none, if it has a record."""
        async with self._lock:
            record = await self._records.claim(group)
            if record.value is None:
                return
            noted = msgspec.structs.replace(
                record.value, kind=kind, protocol_type=protocol_type, empty_since_ms=empty_since_ms
            )
            if noted != record.value:
                await self._records.write(group, record, noted)

    async def delete(self, group: str) -> None:
        """Delete the record, if there is one. A concurrent `ensure` creates it again."""
        async with self._lock:
            await self._records.delete(group, await self._records.claim(group))
