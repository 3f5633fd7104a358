"""The bookies of a cluster that run, as its clients know them: where new ledgers may be placed.

The list follows the store: it is read when something below `available` has changed. While the store
does not answer, the last list stays: bookies do not stop when ZooKeeper does, and an add that fails
tells more than a list.

Both lists are read one after the other, and a bookie that goes from one to the other meanwhile may
be in neither: a list during which something has changed is not published, but read again. Where
something changes all the time, the last of `TORN_MAX` is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import trio

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.following import Following
from magnetar.bookie.format import service_info
from magnetar.bookie.format.service_info import READ_ONLY, ServiceInfo
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.metadata_store import MetadataStore

log = logging.getLogger(__name__)
Infos = Mapping[str, ServiceInfo]
TORN_MAX: Final = 10
"""How often lists are read in a row during which something has changed."""


class Bookies:
    """See the module's docstring."""

    def __init__(
        self, store: MetadataStore, cluster: BookKeeperCluster, *hearers: Callable[[], None]
    ) -> None:
        self._hearers = list(hearers)
        """Called when one of the lists is another one."""
        self.writable: Infos = {}
        self.read_only: Infos = {}
        self._store = store
        self._available = cluster.path("available")
        self._read_only = cluster.path("available", READ_ONLY)
        self._infos: dict[str, ServiceInfo | None] = {}
        """What was read at each path; None if it makes no sense."""
        self._following = Following(
            store, self._available, self._read, "the list of bookies", self._forget
        )

    def tell(self, hearer: Callable[[], None]) -> None:
        """Call this too when one of the lists is another one."""
        self._hearers.append(hearer)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the lists, and again whenever they change, until it is cancelled."""
        await self._following.run(task_status=task_status)

    async def is_registered(self, bookie_id: str) -> bool:
        """Whether a bookie is, by the store itself: a list may be older than what was read of other
        things.
        """
        for parent in (self._available, self._read_only):
            if await self._store.get(f"{parent}/{bookie_id}") is not None:
                return True
        return False

    def _forget(self, path: str) -> None:
        if path in (self._available, self._read_only):
            self._infos.clear()
        self._infos.pop(path, None)

    async def _read(self) -> None:
        for _ in range(TORN_MAX):
            self._following.begin()
            writable = await self._below(self._available)
            read_only = await self._below(self._read_only)
            if not self._following.has_changed:
                break
        if (writable, read_only) != (self.writable, self.read_only):
            self.writable, self.read_only = writable, read_only
            for hear in self._hearers:
                hear()

    async def _below(self, parent: str) -> Infos:
        found = {}
        for name in await self._store.children(parent):
            if name != READ_ONLY and (info := await self._info(f"{parent}/{name}")) is not None:
                found[name] = info
        return found

    async def _info(self, path: str) -> ServiceInfo | None:
        if path in self._infos:
            return self._infos[path]
        stored = await self._store.get(path)
        if stored is None:  # it has stopped meanwhile
            return None
        bookie_id = path.rpartition("/")[2]
        try:
            info = service_info.decode(bookie_id, stored.value)
        except Corrupted as error:
            log.warning("bookie %s is left out: %s", bookie_id, error)
            info = None
        if not self._following.has_changed:  # else it may have been this one
            self._infos[path] = info
        return info
