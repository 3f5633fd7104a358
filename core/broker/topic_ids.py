"""Topic ids (KIP-516): never reused, so a topic that is created again gets another one.

A partitioned topic has one id, its partitions have none. It is assigned on first use and stored
twice: the name under the id first, then the id under the name, which alone decides. A crash in
between leaves a name under an unused id.

Invariant: an id leads to the topic that it was assigned to, or to none.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Final

from magnetar.core.kernel.errors import AlreadyExists, NotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

BY_NAME: Final = "/magnetar/topic-ids"
BY_ID: Final = "/magnetar/topics-by-id"
CACHED_MAX: Final = 50_000
FIRST: Final = 0
"""The version of both records, which are written once and deleted."""


class TopicIds:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._ids: dict[TopicName, bytes] = {}
        """A cache; the oldest entry is removed first."""
        self._forgotten = 0
        """Counts deletions, so that nothing read before one is cached after it."""

    async def of(self, name: TopicName) -> bytes:
        """The id of an existing topic: sixteen bytes, never all zero."""
        found = self._ids.get(name)
        if found is not None:
            return found
        forgotten = self._forgotten
        stored = await self._metadata.get(_by_name(name))
        found = stored.value if stored is not None else await self._make(name)
        if forgotten == self._forgotten:
            while len(self._ids) >= CACHED_MAX:
                del self._ids[next(iter(self._ids))]
            self._ids[name] = found
        return found

    async def _make(self, name: TopicName) -> bytes:
        made = uuid.uuid4().bytes
        await self._metadata.put(_by_id(made), name.full.encode(), ABSENT)
        try:
            await self._metadata.put(_by_name(name), made, ABSENT)
        except AlreadyExists:  # another client was first
            await self._metadata.delete(_by_id(made), FIRST)
            stored = await self._metadata.get(_by_name(name))
            return stored.value if stored is not None else await self._make(name)
        return made

    async def name_of(self, topic_id: bytes) -> TopicName | None:
        """The topic with that id; None for an unknown id, or one of a deleted topic."""
        stored = await self._metadata.get(_by_id(topic_id))
        if stored is None:
            return None
        name = TopicName.parse(stored.value.decode())
        own = await self._metadata.get(_by_name(name))
        return name if own is not None and own.value == topic_id else None

    async def forget(self, name: TopicName) -> None:
        """Delete the id of a topic that is being deleted."""
        stored = await self._metadata.get(_by_name(name))
        if stored is not None:
            for path in (_by_name(name), _by_id(stored.value)):
                with suppress(NotFound):  # another task deletes it, too
                    await self._metadata.delete(path, FIRST)
        self._forgotten += 1
        self._ids.pop(name, None)


def _by_name(name: TopicName) -> str:
    return f"{BY_NAME}/{name.managed_ledger}"


def _by_id(topic_id: bytes) -> str:
    return f"{BY_ID}/{topic_id.hex()}"
