"""A worker that dies before or after any of its requests to the metadata: another one finishes."""

import random
from itertools import count

import pytest
import trio

from magnetar.bookie.client.quorum.tests.mortal import Mortal
from magnetar.bookie.client.quorum.tests.test_recovery import made, put
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.replication.ledger_repair import LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.replication.presence import BookiePresence
from magnetar.bookie.replication.replication_worker import ReplicationWorker
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.replication.tests.recovering import (
    HASTY,
    client_of,
    lose,
    marks_of,
    members,
    until,
)
from magnetar.bookie.replication.tests.test_fragment_replicator import closed
from magnetar.bookie.replication.tests.test_ledger_checker import client_knows
from magnetar.core.kernel.clock import SystemClock


def worker_of(client, store, cluster):
    locks = MarkedLedgers(UnderReplication(store, cluster.cluster), "worker:1", random.Random(1))
    counters = ReplicationCounters()
    presence = BookiePresence(client.bookies, SystemClock())
    repair = LedgerRepair(client, HASTY, counters)
    return ReplicationWorker(locks, repair, HASTY, counters, presence)


@pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])
async def test_another_one_finishes_wherever_it_dies(cluster, carried_out):
    lost = cluster.bookies[0].bookie_id
    marks = marks_of(cluster)
    await marks.prepare()
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        for bookie in cluster.bookies[:3]:
            await put(store, bookie, 7, 0, b"x", -1)
        await closed(cluster, 1)
        await lose(cluster, lost)
        await client_knows(client, 3)
        before = await cluster.metadata.get(cluster.cluster.ledger(7))
        for last in count(1):
            await marks.mark(7, [lost], 1)
            mortal = Mortal(cluster.metadata, last, carried_out=carried_out)
            # The client's own requests die with the worker as well.
            client.ledgers._store = mortal
            with mortal.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(worker_of(client, mortal, cluster).run)
                    await until(cluster, lambda: is_done(cluster))
                    nursery.cancel_scope.cancel()
            client.ledgers._store = cluster.metadata
            cluster.metadata.expire()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker_of(client, cluster.metadata, cluster).run)
                await until(cluster, lambda: is_done(cluster))
                nursery.cancel_scope.cancel()
            ((new, *_),) = await members(cluster, 7)
            assert new == cluster.bookies[3].bookie_id, f"after {last} requests"
            reader = await store.open(7, recover=False)
            assert await reader.read(0, 0, 100) == [b"x"]
            if not mortal.scope.cancelled_caught:  # it had no more requests
                break
            await restore(cluster, before.value)
    assert last > 20


async def is_done(cluster):
    marks = marks_of(cluster)
    return await marks.marked(7) is None and not await marks.store.children(marks.locks)


async def restore(cluster, value):
    """Have the metadata name the lost bookie again, as if nothing had been repaired."""
    path = cluster.cluster.ledger(7)
    found = await cluster.metadata.get(path)
    await cluster.metadata.put(path, value, found.version)
