"""A bookie's membership in a cluster, over the cluster's metadata store.

    check(directories)     before anything is read: cookies, and whether the bookie may start
    ledgers                which ledgers exist: what garbage collection asks
    overview               what administrators ask
    registration(info, session_seconds)     once it serves: the node that clients find it by

Invariant: a bookie that must not start has written nothing, neither to the directories nor to the
store. What is written goes to the directories first: a cookie in the store without one there would
keep the bookie from starting again.
"""

from __future__ import annotations

from magnetar.bookie import cookie_places
from magnetar.bookie.cluster import handshake
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.cluster.handshake import StartVerdict
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.overview import ClusterOverview
from magnetar.bookie.cluster.registration import WAIT_SECONDS, Registration
from magnetar.bookie.format import cookie as cookies
from magnetar.bookie.format import service_info
from magnetar.bookie.format.service_info import ServiceInfo
from magnetar.bookie.server.directories import Directories
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, StorageFailed
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.ports.threads import Threads


class Membership:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster, bookie_id: str) -> None:
        service_info.check_id(bookie_id)
        self.ledgers = ClusterLedgers(store, cluster)
        self.overview = ClusterOverview(store, cluster)
        self._store = store
        self._cluster = cluster
        self._cookies = Cookies(store, cluster)
        self._bookie_id = bookie_id

    async def check(
        self, threads: Threads, directories: Directories, *, may_grow: bool = False
    ) -> None:
        """Check that these are this bookie's directories; of a new bookie they become so, and with
        `may_grow` new and empty ones besides those that it has.

        `StorageFailed` says what the operator has to do.
        """
        ours = cookies.of_directories(
            self._bookie_id, *directories.names, self._cluster.instance_id or ""
        )
        stored = await self._cookies.read(self._bookie_id)
        known = stored.cookie if stored is not None else None
        found = await threads.run(cookie_places.found_in, directories)
        places = [place.described for place in found]
        if handshake.judge(ours, known, places, may_grow=may_grow) is StartVerdict.STAMP:
            await threads.run(cookie_places.stamp, found, ours)
            try:
                version = stored.version if stored is not None else ABSENT
                await self._cookies.write(ours, version)
            except (AlreadyExists, BadVersion):
                await threads.run(cookie_places.restore, found)
                raise self._taken() from None

    def _taken(self) -> StorageFailed:
        return StorageFailed(
            f"another process starts as bookie {self._bookie_id} at the same time: give each its "
            "own --bookie-id"
        )

    def registration(self, info: ServiceInfo, session_seconds: float) -> Registration:
        """The registration of this bookie with what it publishes of itself. It waits for the end
        of an earlier session of its own, which may have begun anew when ZooKeeper did.
        """
        wait = max(WAIT_SECONDS, 3 * session_seconds)
        return Registration(self._store, self._cluster, self._bookie_id, info, wait_seconds=wait)
