"""The broker as transactions use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from magnetar.core.cluster.ownership import Ownership
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.storage import PendingLog
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.topic.topic import Topic


class TopicHost(Protocol):
    """See the module's docstring."""

    metadata: MetadataStore
    ownership: Ownership
    clock: Clock
    topics: dict[str, Topic]
    """Those that are loaded, by their full names."""

    async def topic(self, name: TopicName, *, create: bool) -> Topic: ...

    async def unload(self, name: TopicName) -> None: ...

    def spawn(self, task: Callable[..., object], *args: object) -> None: ...

    def gather(self, written: PendingLog, /) -> None:
        """Have something written at the end of this sweep, or at once."""
        ...
