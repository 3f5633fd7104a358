"""The stored topics of a namespace with their numbers of partitions, kept for as long as the same
names are stored.

A stream that reads by a pattern asks for them before each of its batches. To tell ten thousand
partitions from topics that are only called so takes a millisecond or two; to see that the list is
as it was, 0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio
from msgspec import Struct

from magnetar.core.broker.catalog import Catalog
from magnetar.core.kernel.names import PERSISTENT, NamespaceName, TopicName, partition_name
from magnetar.core.ports.metadata_store import MetadataStore

TOPICS_PER_REST: Final = 100
"""Topics listed before other tasks run."""
PARTITIONS_PER_REST: Final = 2_000
"""The same of names that are known to be those of partitions."""
KEPT_NAMES_MAX: Final = 50_000
"""Of all namespaces that are kept."""


class _Counted(Struct):
    """A namespace as it was."""

    stored: list[str]
    """As the metadata store lists them."""
    known: Mapping[str, int]
    """The numbers of partitions, by what is before those of partitions where they are stored."""
    found: dict[str, int]
    """What comes of both."""

    @property
    def names(self) -> int:
        return 1 + len(self.stored) + len(self.found)


class TopicCounts:
    """See the module's docstring."""

    def __init__(self, catalog: Catalog, metadata: MetadataStore) -> None:
        self._catalog = catalog
        self._metadata = metadata
        self._kept: dict[NamespaceName, _Counted] = {}
        """The one that was asked for last is at the end."""

    async def of(self, namespace: NamespaceName) -> Mapping[str, int]:
        """The number of partitions of each topic that is stored, 0 for one without; the partitions
        themselves are not among them. None of the system's.
        """
        found: dict[str, int] = {}
        known: dict[str, int] = {}
        for base, partitions in (await self._catalog.partitioned_of(namespace)).items():
            if base.persistent and not base.system:
                found[base.full] = partitions
                known[base.managed_ledger.rpartition("/")[2]] = partitions
        stored = await self._metadata.children(namespace.managed_ledgers)
        before = self._kept.get(namespace)
        if before is None or before.stored != stored or before.known != known:
            before = _Counted(stored, known, await _with_others(namespace, stored, known, found))
        self._keep(namespace, before)
        return before.found

    def _keep(self, namespace: NamespaceName, counted: _Counted) -> None:
        self._kept.pop(namespace, None)
        self._kept[namespace] = counted
        while sum(each.names for each in self._kept.values()) > KEPT_NAMES_MAX:
            del self._kept[next(iter(self._kept))]


async def _with_others(
    namespace: NamespaceName, stored: list[str], known: Mapping[str, int], found: dict[str, int]
) -> dict[str, int]:
    """What is found, with the topics that are not partitions of known ones."""
    others = dict.fromkeys(stored)
    for base, partitions in known.items():
        await trio.lowlevel.checkpoint()
        for begin in range(0, partitions, PARTITIONS_PER_REST):
            if begin:
                await trio.lowlevel.checkpoint()
            for index in range(begin, min(begin + PARTITIONS_PER_REST, partitions)):
                others.pop(partition_name(base, index), None)
    for count, encoded in enumerate(others):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        name = TopicName.of_managed_ledger(f"{namespace}/{PERSISTENT}/{encoded}")
        if not name.system:
            found.setdefault(name.full, 0)
    return found
