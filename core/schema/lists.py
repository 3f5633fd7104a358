"""The lists of versions, as the store has them: kept in memory, and changed over the version read.

Every broker of a cluster may change every list, so a change is made anew when another broker was
faster (`BadVersion`). Watches forget what others change; a server of the store that is behind
catches up before a second try.

Limits: `LISTS_BYTES_MAX` in memory, `ATTEMPTS_MAX` tries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio

from magnetar.core.kernel.cooperation import KeyedLocks
from magnetar.core.kernel.errors import AlreadyExists, BadVersion
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.schema import records
from magnetar.core.schema.limited_cache import LimitedCache
from magnetar.core.schema.records import SchemaVersions

Change = Callable[[SchemaVersions], SchemaVersions | None]
"""A list as it is to be; None to leave it."""
Check = Callable[[SchemaVersions], Awaitable[None]]
"""Raises if a list may not be changed."""

ROOTS: Final = (records.LISTS, records.SUBJECTS)
ATTEMPTS_MAX: Final = 20
"""Attempts to write a list that other brokers write at the same time."""
LISTS_BYTES_MAX: Final = 8 * 1024 * 1024
VERSION_BYTES: Final = 400
"""The memory of one version in a list; of a list without any, too."""
REFERRER_BYTES: Final = 40


class KnownVersions:
    """A list as the store had it."""

    __slots__ = ("store_version", "versions")

    def __init__(self, versions: SchemaVersions, store_version: int) -> None:
        self.versions = versions
        self.store_version = store_version


class SchemaLists:
    """See the module's docstring. Lists are named by their paths."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._lists: LimitedCache[str, KnownVersions] = LimitedCache(LISTS_BYTES_MAX)
        self._changes = 0
        """Counts changes, so that no list read before one is kept after it."""
        self._turns: KeyedLocks[str] = KeyedLocks()
        """Of the lists that this broker is changing."""

    def open(self) -> None:
        """Follow what other brokers change. Before anything is read."""
        for root in ROOTS:
            self._metadata.watch(root, self.drop)

    def drop(self, path: str) -> None:
        """Read a list anew when it is asked for next."""
        self._changes += 1
        self._lists.drop(path)
        if path in ROOTS:  # anything below may have changed
            self._lists.clear()

    async def known(self, path: str) -> KnownVersions:
        """A list; an empty one for what has none."""
        found = self._lists.get(path)
        if found is not None:
            return found
        changes = self._changes
        stored = await self._metadata.get(path)
        if stored is None:
            known = KnownVersions(SchemaVersions(), ABSENT)
        else:
            known = KnownVersions(records.decode_versions(stored.value), stored.version)
        if changes == self._changes:
            weight = VERSION_BYTES * (1 + known.versions.count)
            weight += REFERRER_BYTES * known.versions.referrer_count
            self._lists.keep(path, known, weight)
        return known

    async def catch_up(self, path: str = "") -> None:
        """Read a list anew, or all of them, as they are by now: the store's server may be behind
        others.
        """
        await self._metadata.sync()
        self.drop(path or ROOTS[0])

    async def write(self, path: str, versions: SchemaVersions, expected: int) -> None:
        """Write a list over the version that was read; raises `BadVersion`."""
        try:
            await self._metadata.put(path, records.encode_versions(versions), expected)
        except AlreadyExists as error:
            raise BadVersion(f"{path} has been written by another broker") from error
        finally:
            self.drop(path)

    async def change(
        self, path: str, change: Change, check: Check | None = None, *, anew: bool = False
    ) -> SchemaVersions | None:
        """Change a list, which need not be there if it is made `anew`; returns what it was before.
        None if nothing is to be changed.
        """
        for _ in range(ATTEMPTS_MAX):
            known = await self.known(path)
            if known.store_version == ABSENT and not anew:
                return None
            changed = change(known.versions)
            if changed is None:
                return None
            if check is not None:
                await check(known.versions)
            try:
                with trio.CancelScope(shield=True):
                    await self.write(path, changed, known.store_version)
            except BadVersion:
                await self.catch_up(path)
                continue
            return known.versions
        raise BadVersion(f"other brokers keep changing {path}")

    def alone_with(self, path: str) -> AbstractAsyncContextManager[None]:
        """Change a list, one task at a time: hundreds of producers may attach at once."""
        return self._turns.at(path)
