"""Which groups have committed something, and of which partitions; stored with the metadata.

Offsets themselves are cursors of their topics. This list says where to look for them: it is what
remains of a group that nobody is in, and what is deleted last when the group is.

Invariant: a partition is on the list before anything of it is committed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio

from core.errors import NotFound
from core.ports.metadata_store import MetadataStore

GROUPS: Final = "/magnetar/kafka/groups"
Partition = tuple[str, int]
"""A topic as clients call it, and a number."""

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(list[Partition]).decode


class Registry:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._known: dict[str, set[Partition]] = {}
        self._lock = trio.Lock()

    async def groups(self) -> list[str]:
        """Everybody who has committed something."""
        return sorted(unquote(name) for name in await self._metadata.children(GROUPS))

    async def partitions(self, group: str) -> set[Partition]:
        """Of which something was committed."""
        async with self._lock:
            return set(await self._of(group))

    async def add(self, group: str, partition: Partition) -> None:
        """Something of this partition is about to be committed."""
        if partition in self._known.get(group, ()):
            return
        async with self._lock:
            known = await self._of(group)
            await self._metadata.put(_path(group), _encode(sorted(known | {partition})))
            self._known[group] = known | {partition}

    async def remove(self, group: str, partition: Partition) -> None:
        """Nothing of it is committed any more."""
        async with self._lock:
            known = await self._of(group) - {partition}
            if known:
                await self._metadata.put(_path(group), _encode(sorted(known)))
                self._known[group] = known
                return
            self._known.pop(group, None)
            with suppress(NotFound):  # it never was
                await self._metadata.delete(_path(group))

    async def _of(self, group: str) -> set[Partition]:
        if group not in self._known:
            found = await self._metadata.get(_path(group))
            if found is None:
                return set()
            self._known[group] = set(_decode(found.value))
        return self._known[group]


def _path(group: str) -> str:
    return f"{GROUPS}/{quote(group, safe='')}"
