"""AutoRecovery of a cluster: an auditor, if it is elected, and a replication worker, in one process
(`AutoRecoveryMain.java` of BookKeeper 4.18).

Any number of them, ours and Apache's, may run in a cluster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_client
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.replication.auditor import Auditor
from magnetar.bookie.replication.audits import Audits
from magnetar.bookie.replication.election import AuditorElection
from magnetar.bookie.replication.ledger_repair import LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.replication.presence import BookiePresence
from magnetar.bookie.replication.replication_worker import ReplicationWorker
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.ports.metadata_store import MetadataStore


class AutoRecovery(Struct, frozen=True):
    """One that runs."""

    counters: ReplicationCounters
    election: AuditorElection


class RecoveryMember(Struct, frozen=True):
    """One of those who audit and repair."""

    bookie_id: str
    """Its name in votes and locks."""
    began_ms: int | None = None
    """Since when the bookie of that id runs, if it does in this process."""


@asynccontextmanager
async def open_auto_recovery(
    metadata: MetadataStore,
    cluster: BookKeeperCluster,
    machine: ClientMachine,
    member: RecoveryMember,
    settings: RecoverySettings,
    quorum: QuorumSettings | None = None,
) -> AsyncIterator[AutoRecovery]:
    """Audit and repair while the block lasts, in a cluster that is prepared for it
    (`UnderReplication.prepare`).
    """
    counters = ReplicationCounters()
    marks = UnderReplication(metadata, cluster)
    async with open_cluster_client(
        metadata, cluster, machine, quorum or QuorumSettings()
    ) as client:
        clock = machine.clock
        audits = Audits(client, marks, clock, counters, settings)
        auditor = Auditor(client, marks, audits, clock, settings)
        election = AuditorElection(metadata, cluster, member.bookie_id)
        presence = BookiePresence(client.bookies, clock, member.bookie_id, member.began_ms)
        worker = ReplicationWorker(
            MarkedLedgers(marks, member.bookie_id, machine.chance),
            LedgerRepair(client, settings, counters),
            settings,
            counters,
            presence,
        )
        client.bookies.tell(presence.changed)
        client.bookies.tell(auditor.changed)
        client.bookies.tell(worker.bookies_changed)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(election.run, auditor.run)
            nursery.start_soon(worker.run)
            try:
                yield AutoRecovery(counters, election)
            finally:
                nursery.cancel_scope.cancel()
