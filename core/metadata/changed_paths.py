"""Follows records that are kept in memory, too: each path that has changed is loaded, and what was
loaded is put in force.

    noted       a path has changed; the store's watches note it, and whoever has changed it himself
    loaded      the owner's `load` has read it, and said whether that changes anything
    in force    the owner's `loaded` was called, after all paths that were noted

Invariants: after `settled` all that was stored before the call is in force; a path that could not
be loaded stays noted. `run` asks again until storage answers: former values hold meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import trio

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.metadata_store import MetadataStore

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0


def _nothing() -> None:
    """Loading is all."""


class ChangedPaths:
    """See the module's docstring."""

    def __init__(
        self,
        what: str,
        load: Callable[[str], Awaitable[bool]],
        loaded: Callable[[], None] = _nothing,
        stale: Iterable[str] = (),
    ) -> None:
        """`what` says in the log what is changed; `stale` is to be loaded at first."""
        self._what = what
        self._load = load
        self._loaded = loaded
        self._stale: dict[str, None] = dict.fromkeys(stale)
        self._noted = trio.Event()
        self._lock = trio.Lock()
        self._is_due = False
        """Whether something was loaded that is not in force."""

    def follow(self, metadata: MetadataStore, roots: Iterable[str]) -> None:
        """Note what changes below these paths from now on."""
        for root in roots:
            metadata.watch(root, self.note)

    def note(self, path: str) -> None:
        self._stale[path] = None
        self._noted.set()

    def forget(self, roots: Iterable[str]) -> None:
        """What is noted below these paths is being loaded with another one."""
        for root in roots:
            for path in [each for each in self._stale if each.startswith(root)]:
                del self._stale[path]

    async def settled(self) -> None:
        """Return when all that is stored is in force."""
        async with self._lock:
            while self._stale:
                path = next(iter(self._stale))
                del self._stale[path]
                try:
                    self._is_due |= await self._load(path)
                except BaseException:
                    self._stale[path] = None  # it is still to be loaded
                    raise
            if self._is_due:
                self._is_due = False
                self._loaded()

    async def run(self) -> None:
        """Put in force what changes, until cancelled."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            try:
                await self.settled()
            except BrokerError as error:
                log.warning(
                    "changed %s are not in force, storage is asked again: %s", self._what, error
                )
                await trio.sleep(RETRY_SECONDS)
                self._noted.set()
