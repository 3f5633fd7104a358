"""What the metadata of a cluster tell administrators: who runs, which ledgers there are, whether
something waits for repair. Everything is read when it is asked for.

Apache: `ListBookiesService.java`, `ClusterInfoService.java`, `GetLedgerMetaService.java` of 4.18.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.recovery_control import RecoveryControl
from magnetar.bookie.format import ledger_metadata, service_info
from magnetar.bookie.format.service_info import READ_ONLY
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted, NotFound
from magnetar.core.ports.bookie_administration import ReplicationDetails
from magnetar.core.ports.metadata_store import MetadataStore

UNKNOWN: Final = ""
"""The address of a bookie that publishes none."""


class ClusterOverview:
    """See the module's docstring; a `ClusterAdministration`."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self._store = store
        self._cluster = cluster
        self._ledgers = ClusterLedgers(store, cluster)
        self.recovery = RecoveryControl(store, cluster)

    async def bookies(self) -> Mapping[str, str]:
        return await self._addresses(self._cluster.path("available"))

    async def read_only_bookies(self) -> Mapping[str, str]:
        return await self._addresses(self._cluster.path("available", READ_ONLY))

    async def _addresses(self, parent: str) -> Mapping[str, str]:
        found = {}
        for name in await self._store.children(parent):
            stored = await self._store.get(f"{parent}/{name}") if name != READ_ONLY else None
            if stored is not None:
                found[name] = _address(name, stored.value)
        return found

    async def known_bookies(self) -> Sequence[str]:
        return await Cookies(self._store, self._cluster).bookies()

    async def replication(self) -> ReplicationDetails:
        root = self._cluster.path("underreplication")
        waiting = await self._leads_to_ledger(f"{root}/ledgers")
        auditor, enabled = await self.recovery.auditor(), await self.recovery.is_enabled()
        return ReplicationDetails(auditor, enabled, waiting)

    async def _leads_to_ledger(self, path: str) -> bool:
        for name in await self._store.children(path):
            if name.startswith("urL") or await self._leads_to_ledger(f"{path}/{name}"):
                return True
        return False

    async def ledgers(self) -> Sequence[int]:
        return await self._ledgers.ids()

    async def ledger(self, ledger_id: int) -> Mapping[str, object]:
        return _described(ledger_id, *await self._ledgers.read_with_format(ledger_id))

    async def delete_ledger(self, ledger_id: int) -> None:
        await self._ledgers.delete(ledger_id)


def _address(bookie_id: str, value: bytes) -> str:
    try:
        return service_info.decode(bookie_id, value).rpc().address
    except (Corrupted, NotFound):
        return UNKNOWN


def _described(ledger_id: int, ledger: LedgerMetadata, version: int) -> Mapping[str, object]:
    """The fields by the names of `LedgerMetadata.java`; the password is left out."""
    return {
        "ledgerId": ledger_id,
        "metadataFormatVersion": version,
        "ensembleSize": ledger.ensembleSize,
        "writeQuorumSize": ledger.quorumSize,
        "ackQuorumSize": ledger.ackQuorumSize or ledger.quorumSize,
        "state": LedgerMetadata.State.Name(ledger.state),
        "closed": ledger.state == ledger_metadata.CLOSED,
        "length": ledger.length,
        "lastEntryId": ledger.lastEntryId,
        "ctime": ledger.ctime,
        "ctoken": ledger.cToken,
        "digestType": LedgerMetadata.DigestType.Name(ledger.digestType),
        "hasPassword": bool(ledger.password),
        "allEnsembles": {
            str(segment.firstEntryId): [{"id": bookie} for bookie in segment.ensembleMember]
            for segment in ledger.segment
        },
        "customMetadata": {
            item.key: base64.b64encode(item.value).decode() for item in ledger.customMetadata
        },
    }
