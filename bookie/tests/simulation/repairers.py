"""Simulated clients that restore what bookies have lost.

repairer    audits the cluster, and repairs ledgers, like `magnetar recovery`: several at a time
stranger    marks what bookies that run lack, and repairs nothing: another one's auditor, whose
            marks are all that the repairers of a run know of that
operator    has all ledgers do without one bookie, like `magnetar bookie recover`
"""

import trio

from magnetar.bookie.client.quorum.store import (
    open_cluster_client,
)
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.replication.audits import Audits
from magnetar.bookie.replication.auto_recovery import RecoveryMember, open_auto_recovery
from magnetar.bookie.replication.bookie_recovery import BookieRecovery
from magnetar.bookie.replication.ledger_repair import LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.tests.simulation.bookies import leaves
from magnetar.bookie.tests.simulation.clients import running_client
from magnetar.core.kernel.errors import BrokerError, StorageFailed

CHECK_SECONDS = 3.0


async def repair(world, name):
    """Audit the cluster and restore what lost bookies had, as `magnetar recovery` does; who does
    may die, while there are faults.
    """
    async with running_client(world, name) as client:
        if not world.calm and client.chance.random() < 0.5:
            world.timeline.call_in(client.chance.expovariate(1.0), client.crash)
        climate = world.climate
        checks = climate.checks and not climate.stranger
        settings = RecoverySettings(
            open_ledger_grace_seconds=0.3,
            failed_ledger_pause_seconds=1.0,
            error_pause_seconds=0.2,
            check_bookies_seconds=2.0,
            check_all_ledgers_seconds=CHECK_SECONDS if checks else 0,
            verification_percentage=climate.verification_percentage if checks else 0,
        )
        opened = open_auto_recovery(
            client.session,
            world.cluster,
            client.machine,
            RecoveryMember(name),
            settings,
            client.settings,
        )
        async with opened as running:
            client.note("repairs")
            world.repairers[name] = running.election
            try:
                await trio.sleep_forever()
            finally:
                del world.repairers[name]


async def inspect(world, name):
    """Check all ledgers, and mark those of which bookies lack something."""
    async with running_client(world, name) as client:
        settings = RecoverySettings(verification_percentage=world.climate.verification_percentage)
        async with open_cluster_client(
            client.session, world.cluster, client.machine, client.settings
        ) as cluster_client:
            marks = UnderReplication(client.session, world.cluster)
            counters = ReplicationCounters()
            audits = Audits(cluster_client, marks, world.run.clock, counters, settings)
            while True:
                await trio.sleep(CHECK_SECONDS)
                try:
                    await audits.check_all_ledgers()
                except StorageFailed as error:
                    client.note(f"cannot check ledgers: {error}")


async def empty(world, name, bookie_id):
    """Have all ledgers do without a bookie, as `magnetar bookie recover` does by hand."""
    async with running_client(world, name) as client:
        if client.chance.random() < 0.3:
            world.timeline.call_in(client.chance.expovariate(1.0), client.crash)
        client.note(f"replaces {bookie_id}")
        try:
            await _replace(client, bookie_id)
        except* StorageFailed as group:
            client.note(f"cannot replace {bookie_id}: {next(leaves(group))}")


async def _replace(client, bookie_id):
    async with open_cluster_client(
        client.session, client.world.cluster, client.machine, client.settings
    ) as cluster_client:
        marks = UnderReplication(client.session, client.world.cluster)
        recovery = BookieRecovery(
            cluster_client,
            LedgerRepair(cluster_client, RecoverySettings(), ReplicationCounters()),
            MarkedLedgers(marks, client.name, client.chance),
            [bookie_id],
        )
        with trio.move_on_after(3.0):
            for ledger_id in await cluster_client.ledgers.ids():
                try:
                    await recovery.recover(ledger_id, waits_for=lambda _: None)
                except BrokerError as error:
                    client.note(f"cannot replace {bookie_id} in {ledger_id}: {error}")
