"""Waits for changes at or below a path, so that none is missed: the watch is older than each look.

with Changes(store, path) as changes:
while True:
changes.begin()
...                     look, and leave if what was waited for is there
await changes.wait()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import trio

from magnetar.core.ports.metadata_store import MetadataStore


class Changes:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, path: str) -> None:
        self._store = store
        self._path = path
        self._changed = trio.Event()
        self._end: Callable[[], None]

    def __enter__(self) -> Self:
        self._end = self._store.watch(self._path, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _heard(self, _: str) -> None:
        self._changed.set()

    def begin(self) -> None:
        """Forget what has changed so far: it is about to be looked at."""
        self._changed = trio.Event()

    async def wait(self) -> None:
        """Until something has changed since."""
        await self._changed.wait()
