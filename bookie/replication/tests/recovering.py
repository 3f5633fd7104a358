"""What tests of this room share: AutoRecovery over the bookies of this process."""

import random
from contextlib import asynccontextmanager

import trio

from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_client
from magnetar.bookie.client.quorum.tests.bookies import QUICK
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.replication.auto_recovery import RecoveryMember, open_auto_recovery
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.core.kernel.clock import SystemClock

HASTY = RecoverySettings(
    open_ledger_grace_seconds=0.05, failed_ledger_pause_seconds=1.6, error_pause_seconds=0.05
)


def machine(seed=1):
    return ClientMachine(SystemNetwork(), SystemClock(), random.Random(seed))


@asynccontextmanager
async def client_of(cluster):
    """A client that repairs ledgers."""
    async with open_cluster_client(
        cluster.metadata, cluster.cluster, machine(), QuorumSettings(), QUICK
    ) as client:
        yield client


@asynccontextmanager
async def recovering(cluster, name="auditor:1", settings=HASTY, seed=1):
    await marks_of(cluster).prepare()
    async with open_auto_recovery(
        cluster.metadata, cluster.cluster, machine(seed), RecoveryMember(name), settings
    ) as recovery:
        yield recovery


def marks_of(cluster):
    return UnderReplication(cluster.metadata, cluster.cluster)


async def until(cluster, holds, path="/"):
    """Wait until something is so, which is looked at whenever the metadata change."""
    with trio.fail_after(20):
        while True:
            changed = trio.Event()
            end = cluster.metadata.watch(path, lambda _, changed=changed: changed.set())
            try:
                if await holds():
                    return
                await changed.wait()
            finally:
                end()


async def members(cluster, ledger_id):
    ledger = await cluster.ledgers.read(ledger_id)
    return [list(segment.ensembleMember) for segment in ledger.segment]


async def lose(cluster, bookie_id):
    """Kill a bookie, which is not registered any more."""
    await cluster.bookie(bookie_id).kill()
    await cluster.unregister(bookie_id)
