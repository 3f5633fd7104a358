"""Configs of groups: stored, and at hand where a member calls.

They belong to a name: they may be there before the group is, and stay when it is deleted, as
Kafka's do, until somebody takes them back.

Invariant: what is at hand is on the disk, and takes no more room than it may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio

from core.errors import NotFound
from core.ports.metadata_store import MetadataStore
from wire.kafka.errors import POLICY_VIOLATION, Refused
from wire.kafka.groups import configs
from wire.kafka.groups.consumer.words import Timing
from wire.kafka.groups.options import GroupOptions
from wire.kafka.groups.room import Room

CONFIGS: Final = "/magnetar/kafka/group-configs"
BYTES_MAX: Final = 16 * 1024 * 1024
"""Of memory, for the configs of all groups."""
GROUP_BYTES: Final = 1_000
"""Of one group, but for its name."""

Configs = dict[str, str]

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Configs).decode


class Configured:
    """See the module's docstring."""

    def __init__(
        self, metadata: MetadataStore, options: GroupOptions, bytes_max: int = BYTES_MAX
    ) -> None:
        self.options = options
        self._metadata = metadata
        self._room = Room(bytes_max)
        self._own: dict[str, Configs] = {}
        self._lock = trio.Lock()

    async def open(self) -> None:
        """Know what was stored before a restart."""
        for name in await self._metadata.children(CONFIGS):
            found = await self._metadata.get(f"{CONFIGS}/{name}")
            if found is not None:
                group = unquote(name)
                self._room.take(_size(group))
                self._own[group] = _decode(found.value)

    def names(self) -> list[str]:
        """Groups that were told something."""
        return sorted(self._own)

    def of(self, group: str) -> Mapping[str, str]:
        """What a group was told itself."""
        return self._own.get(group, {})

    def timing(self, group: str) -> Timing:
        """What members of a group are told, and held to."""
        return configs.timing_of(self.of(group), self.options)

    async def change(
        self, group: str, change: Callable[[Configs], Configs], *, for_real: bool
    ) -> None:
        """Have it be so on the disk, and then here; `Refused` for what may not be."""
        async with self._lock:
            wanted = change(dict(self.of(group)))
            configs.check_together(wanted, self.options)
            is_new = bool(wanted) and group not in self._own
            if is_new and not self._room.has(_size(group)):
                raise Refused(POLICY_VIOLATION, "configs of groups take as much room as they may")
            if for_real:
                await self._store(group, wanted)

    async def _store(self, group: str, wanted: Configs) -> None:
        path = f"{CONFIGS}/{quote(group, safe='')}"
        if wanted:
            await self._metadata.put(path, _encode(wanted))
            if group not in self._own:
                self._room.take(_size(group))
            self._own[group] = wanted
            return
        with suppress(NotFound):  # it was told nothing
            await self._metadata.delete(path)
        if self._own.pop(group, None) is not None:
            self._room.take(-_size(group))


def _size(group: str) -> int:
    return GROUP_BYTES + 4 * len(group)
