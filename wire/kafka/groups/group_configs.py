"""The configs of groups: stored, and in memory for heartbeats.

They belong to a name: they may exist before the group does, and stay when it is deleted until they
are reset, as in Kafka.

Any broker of a cluster may change them (KIP-848 sends them where all configs go), so they have no
owner: a change that meets a newer value is repeated on that one. A change by another broker is seen
here only then, or after a restart.

Invariants: the configs in memory are stored; nothing is added beyond the memory limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import BadVersion, Corrupted, Fenced
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.wire.kafka.errors import POLICY_VIOLATION, KafkaRefusal
from magnetar.wire.kafka.groups import configs
from magnetar.wire.kafka.groups.consumer.heartbeat import Timing
from magnetar.wire.kafka.groups.memory_budget import GroupMemory
from magnetar.wire.kafka.groups.options import GroupOptions

log = logging.getLogger(__name__)

CONFIGS: Final = "/magnetar/kafka/group-configs"
BYTES_MAX: Final = 16 * 1024 * 1024
"""Memory for the configs of all groups."""
GROUP_BYTES: Final = 1_000
"""The memory of one group's configs, without its name."""
TRIES_MAX: Final = 5
"""Attempts of one change, while other brokers change the same group."""

Configs = dict[str, str]

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Configs).decode


class GroupConfigs:
    """See the module's docstring."""

    def __init__(
        self, metadata: MetadataStore, options: GroupOptions, bytes_max: int = BYTES_MAX
    ) -> None:
        self.options = options
        self._metadata = metadata
        self._memory = GroupMemory(bytes_max)
        self._records: dict[str, OwnedRecord[Configs]] = {}
        """The records of groups with configs of their own."""
        self._lock = trio.Lock()

    async def open(self) -> None:
        """Load all stored configs, even beyond the memory limit.

        An unreadable record fails its group: it has no configs of its own, and accepts none.
        """
        for name in await self._metadata.children(CONFIGS):
            group = unquote(name)
            try:
                await self._read(group)
            except Corrupted as error:
                log.error(
                    "group %s: its configs cannot be read, and do not apply: %s", group, error
                )

    def names(self) -> list[str]:
        """Groups with configs of their own."""
        return sorted(self._records)

    def of(self, group: str) -> Mapping[str, str]:
        """A group's own configs."""
        record = self._records.get(group)
        return (record.value or {}) if record is not None else {}

    def timing(self, group: str) -> Timing:
        """The timing of a group's members."""
        return configs.timing_of(self.of(group), self.options)

    async def change(
        self, group: str, change: Callable[[Configs], Configs], *, for_real: bool
    ) -> None:
        """Store changed configs, and apply them; `KafkaRefusal` for invalid ones."""
        async with self._lock:
            for _ in range(TRIES_MAX):
                if group not in self._records:
                    await self._read(group)  # another broker may have stored some
                try:
                    await self._change(group, change, for_real=for_real)
                except Fenced:
                    await self._read(group)
                else:
                    return
            raise BadVersion(f"configs of group {group} are being changed by others")

    async def _change(
        self, group: str, change: Callable[[Configs], Configs], *, for_real: bool
    ) -> None:
        changed = change(dict(self.of(group)))
        configs.check_together(changed, self.options)
        is_new = bool(changed) and group not in self._records
        if is_new and not self._memory.has(_size(group)):
            raise KafkaRefusal(
                POLICY_VIOLATION, "configs of groups take as much memory as they may"
            )
        if for_real and (changed or group in self._records):
            await self._store(group, changed)

    async def _store(self, group: str, changed: Configs) -> None:
        record = self._records.get(group)
        if record is None:
            record = self._record(group)
            await record.create(changed)
        elif changed:
            await record.write(changed)
        else:
            await record.delete()
        self._hold(group, record)

    async def _read(self, group: str) -> None:
        record = self._record(group)
        await record.load()
        self._hold(group, record)

    def _hold(self, group: str, record: OwnedRecord[Configs]) -> None:
        """Apply a record, or remove the group if it has no configs left."""
        self._memory.take(((record.value is not None) - (group in self._records)) * _size(group))
        self._records.pop(group, None)
        if record.value is not None:
            self._records[group] = record

    def _record(self, group: str) -> OwnedRecord[Configs]:
        return OwnedRecord(self._metadata, f"{CONFIGS}/{quote(group, safe='')}", _encode, _decode)


def _size(group: str) -> int:
    return GROUP_BYTES + 4 * len(group)
