"""Follows a part of a cluster's metadata: it is read, and again whenever something has changed.

While the store does not answer, what was read last stays.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.metadata_store import MetadataStore

RETRY_SECONDS: Final = 1.0
log = logging.getLogger(__name__)


class Following:
    """See the module's docstring. `what` is for the log, in the plural."""

    def __init__(
        self,
        store: MetadataStore,
        path: str,
        read: Callable[[], Awaitable[None]],
        what: str,
        forget: Callable[[str], None] | None = None,
    ) -> None:
        """`forget` is called first when something has changed at a path."""
        self._store = store
        self._path = path
        self._read = read
        self._what = what
        self._forget = forget
        self._changed = trio.Event()

    @property
    def has_changed(self) -> bool:
        """Whether something has changed since reading began."""
        return self._changed.is_set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read, report that, and read again whenever something has changed, until cancelled."""
        end = self._store.watch(self._path, self._heard)
        try:
            await self._read_anew()
            task_status.started()
            while True:
                await self._changed.wait()
                try:
                    await self._read_anew()
                except StorageFailed as error:
                    log.warning("%s cannot be read: %s", self._what, error)
                    self._changed.set()
                    await trio.sleep(RETRY_SECONDS)
        finally:
            end()

    def _heard(self, path: str) -> None:
        if self._forget is not None:
            self._forget(path)
        self._changed.set()

    def begin(self) -> None:
        """Reading begins, or begins again."""
        self._changed = trio.Event()

    async def _read_anew(self) -> None:
        self.begin()
        await self._read()
