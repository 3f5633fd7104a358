"""What administrators tell the auditor and the replication workers of a cluster, through its
metadata: a `RecoveryAdministration`.

Apache: `AutoRecoveryStatusService.java`, `TriggerAuditService.java`,
`LostBookieRecoveryDelayService.java` of 4.18.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import UnderReplication, under_replicated
from magnetar.core.kernel.errors import AlreadyExists, NotAllowed, NotFound
from magnetar.core.ports.metadata_store import MetadataStore

_VOTER: Final = re.compile(rb'bookieId: "([^"]*)"')


class RecoveryControl:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self._store = store
        self._cluster = cluster
        self._marks = UnderReplication(store, cluster)

    async def is_enabled(self) -> bool:
        return await self._marks.is_enabled()

    async def switch(self, *, enabled: bool) -> None:
        with suppress(AlreadyExists, NotFound):  # it is so already
            if enabled:
                await self._marks.enable()
            else:
                await self._marks.prepare()
                await self._marks.disable()

    async def auditor(self) -> str | None:
        """The voter whose vote is the oldest (`ZkLedgerAuditorManager.java` of 4.18)."""
        place = f"{self._marks.root}/auditorelection"
        for name in sorted(
            await self._store.children(place), key=lambda vote: vote.rpartition("_")[2]
        ):
            stored = await self._store.get(f"{place}/{name}")
            match = None if stored is None else _VOTER.search(stored.value)
            if match is not None:
                return match[1].decode(errors="replace")
        return None

    async def waiting(self) -> Mapping[int, Sequence[str]]:
        found = await under_replicated(self._store, self._cluster)
        return {each.ledger_id: each.missing for each in found}

    async def trigger_audit(self) -> str:
        """As Apache's tool does it: writing the delay that is set already asks for an audit."""
        if not await self.is_enabled():
            raise NotAllowed("autorecovery is disabled")
        if (auditor := await self.auditor()) is None:
            raise NotAllowed("nobody is the auditor")
        await self.set_delay(await self.delay() or 0)
        return auditor

    async def delay(self) -> int | None:
        found = await self._marks.delay()
        return None if found is None else found[0]

    async def set_delay(self, seconds: int) -> None:
        await self._marks.prepare()
        await self._marks.set_delay(seconds)
