"""All ledgers of a cluster: their metadata, and the list of them.

Who deletes what is not in a list must be sure that the list is whole. So `ids` gives all or raises:

- It waits first until it sees what everybody has written (`MetadataStore.sync`).
- A name that makes no sense where a ledger's should be is an error. Apache's clients log it, and
  take the ledger for missing (`AbstractZkLedgerManager.ledgerListToSet` of 4.18).
- The cluster must be the same one before and after: a root that was removed has no children either.

What is created meanwhile may be missing: the caller takes its own ledgers down before it asks. And
before `deleted` says so of a ledger, its own node is looked up too (Apache does that only with
`verifyMetadataOnGC`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.levels import remove_empty_levels
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import (
    BadVersion,
    Corrupted,
    LedgerNotFound,
    NotFound,
    StorageFailed,
    Unsupported,
)
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore, Versioned


class ClusterLedgers:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self._store = store
        self._cluster = cluster

    async def read(self, ledger_id: int) -> LedgerMetadata:
        """`LedgerNotFound` only if there certainly is none."""
        ledger, _, _ = await self._read(ledger_id)
        return ledger

    async def read_with_format(self, ledger_id: int) -> tuple[LedgerMetadata, int]:
        """The same, and the version of the metadata's format."""
        ledger, version, _ = await self._read(ledger_id)
        return ledger, version

    async def stored(self, ledger_id: int) -> Versioned:
        """The same as bytes."""
        found = await self._store.get(self._cluster.ledger(ledger_id))
        if found is None:
            raise LedgerNotFound(f"there is no ledger {ledger_id}")
        return found

    async def _read(self, ledger_id: int) -> tuple[LedgerMetadata, int, int]:
        """The metadata, the version of their format, and that of their node."""
        found = await self.stored(ledger_id)
        return *ledger_metadata.decode_of(ledger_id, found.value), found.version

    async def create(self, ledger_id: int, ledger: LedgerMetadata) -> None:
        """`AlreadyExists` if the id is taken. `cToken` must be of this creation alone: it tells our
        node, if the store does not know whether it created it, from one of another client.
        """
        path = self._cluster.ledger(ledger_id)
        data = ledger_metadata.encode(ledger)
        try:
            await self._store.put(path, data, ABSENT)
        except StorageFailed:
            found = await self._store.get(path)
            if found is None or found.value != data:
                raise

    async def change(
        self, ledger_id: int, transform: Callable[[LedgerMetadata], bool]
    ) -> LedgerMetadata:
        """Apply `transform` in place; it returns False if nothing must be written, or raises. It is
        applied again to what another client has written meanwhile (`MetadataUpdateLoop.java`).
        """
        while True:
            ledger, form, version = await self._read(ledger_id)
            if not transform(ledger):
                return ledger
            data = ledger_metadata.encode(ledger, form)
            try:
                await self._store.put(self._cluster.ledger(ledger_id), data, version)
            except BadVersion:
                continue
            return ledger

    async def delete(self, ledger_id: int) -> None:
        """Delete the metadata, whatever they are; one that is gone is no error."""
        path = self._cluster.ledger(ledger_id)
        while (found := await self._store.get(path)) is not None:
            with suppress(BadVersion, NotFound):
                await self._store.delete(path, found.version)
        await remove_empty_levels(self._store, path, self._cluster.root)

    async def ids(self) -> list[int]:
        """The ids of all ledgers, in order; see the module's docstring."""
        await self._check()
        await self._store.sync()
        found: list[int] = []
        for name in await self._store.children(self._cluster.root):
            if not clusters.is_special(name) and self._cluster.layout.belongs_to_ledgers(name):
                await self._walk(name, found)
        await self._check()
        return sorted(found)

    # -- as a bookie's `LedgerCatalog` ---------------------------------------------------------

    async def deleted(self, ledger_ids: Sequence[int]) -> list[int]:
        """Those of these ledgers that are in no whole list, and have no node."""
        listed = set(await self.ids())
        gone = [i for i in ledger_ids if i not in listed and await self._is_absent(i)]
        await self._check()
        return gone

    async def _is_absent(self, ledger_id: int) -> bool:
        try:
            path = self._cluster.ledger(ledger_id)
        except Unsupported:  # no client of this cluster can have made it; nothing tells of it
            return False
        return await self._store.get(path) is None

    async def last_entries(self) -> None:
        """None: of an ensemble's entries a bookie has only some."""

    async def owner(self, ledger_id: int) -> str:
        return ledger_metadata.owner(await self.read(ledger_id))

    async def _walk(self, path: str, found: list[int]) -> None:
        ledger_id = self._cluster.layout.id_of(path)
        if ledger_id is not None:
            found.append(ledger_id)
        elif self._cluster.layout.leads_to_ledgers(path):
            for name in await self._store.children(self._cluster.path(path)):
                await self._walk(f"{path}/{name}", found)
        else:
            raise Corrupted(
                f"{self._cluster.path(path)} is where ledgers are, and is none: the list of "
                "ledgers would not be whole"
            )

    async def _check(self) -> None:
        cluster = await clusters.find(self._store, self._cluster.root)
        if cluster != self._cluster:
            raise Corrupted(f"the cluster at {self._cluster.root} is another one than before")
