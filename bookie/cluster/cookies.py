"""The cookies of a cluster's bookies: `cookies/BOOKIE` tells whose directories are whose.

Apache: `ZKRegistrationManager.java` and `LegacyCookieValidation.java` of 4.18. A bookie compares it
with what stands in each of its directories (`format/cookie.py`), and starts only if all are alike.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.format import cookie as cookies
from magnetar.bookie.format.cookie import Cookie
from magnetar.core.kernel.errors import AlreadyExists, Corrupted, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore


class StoredCookie(Struct, frozen=True):
    """A cookie, and the version of its node: whoever replaces it names that."""

    cookie: Cookie
    version: int


class Cookies:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self._store = store
        self._cluster = cluster

    def _path(self, bookie_id: str) -> str:
        return self._cluster.path("cookies", bookie_id)

    async def read(self, bookie_id: str) -> StoredCookie | None:
        found = await self._store.get(self._path(bookie_id))
        if found is None:
            return None
        try:
            return StoredCookie(cookies.decode(found.value.decode()), found.version)
        except ValueError as error:
            raise Corrupted(f"the cookie of bookie {bookie_id}: {error}") from None

    async def write(self, cookie: Cookie, expected: int = ABSENT) -> int:
        """Create it (`AlreadyExists`), or write over a version (`BadVersion`)."""
        data = cookie.encode().encode()
        with suppress(AlreadyExists):  # it must stay when the last cookie goes: tools list it
            await self._store.put(self._cluster.path("cookies"), b"", ABSENT)
        return await self._store.put(self._path(cookie.bookie_id), data, expected)

    async def delete(self, bookie_id: str) -> None:
        """Forget a bookie, whose data are gone or given up: it may begin anew."""
        found = await self._store.get(self._path(bookie_id))
        if found is None:
            raise NotFound(f"bookie {bookie_id} has no cookie")
        await self._store.delete(self._path(bookie_id), found.version)

    async def bookies(self) -> list[str]:
        """The ids of all bookies that have ever been here, and were not forgotten."""
        return await self._store.children(self._cluster.path("cookies"))
