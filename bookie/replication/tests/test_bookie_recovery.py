"""Bookies that are replaced by hand."""

import random
from functools import partial

import pytest
import trio
import trio.lowlevel

from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.bookie_recovery import (
    BookieRecovery,
    LockedElsewhere,
    RecoveredLedger,
)
from magnetar.bookie.replication.ledger_repair import LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.replication.tests.recovering import HASTY, client_of, marks_of, members
from magnetar.bookie.replication.tests.test_ledger_repair import written
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing.metadata import remove


def recovery_of(cluster, client, *lost):
    repair = LedgerRepair(client, HASTY, ReplicationCounters())
    locks = MarkedLedgers(marks_of(cluster), "tool:1", random.Random(1))
    return BookieRecovery(client, repair, locks, lost)


async def test_what_would_be_done_is_what_is_done(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        ledger_id = await written(store, b"x", b"y")
        ((one, *kept),) = await members(cluster, ledger_id)
        (spare,) = set(client.bookies.writable) - {one, *kept}
        recovery = recovery_of(cluster, client, one)
        (planned,) = await recovery.plan(ledger_id)
        assert (planned.first, planned.last, planned.open) == (0, 1, False)
        assert planned.replacements == {one: spare}
        assert await members(cluster, ledger_id) == [[one, *kept]]
        assert await recovery.recover(ledger_id) == RecoveredLedger(1, closed=False)
        assert await members(cluster, ledger_id) == [[spare, *kept]]
        assert await recovery.recover(ledger_id) is None
        assert await recovery.plan(ledger_id) == []
        assert await cluster.metadata.children(marks_of(cluster).locks) == []


async def test_open_ledgers_are_closed_or_left_alone(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        writer = await store.create({})
        await append(writer, b"x")
        ((one, *_),) = await members(cluster, writer.ledger_id)
        recovery = recovery_of(cluster, client, one)
        assert (await recovery.plan(writer.ledger_id))[0].open
        assert await recovery.recover(writer.ledger_id, skip_open=True) is None
        assert (await cluster.ledgers.read(writer.ledger_id)).state == ledger_metadata.OPEN
        assert await recovery.recover(writer.ledger_id) == RecoveredLedger(1, closed=True)
        assert (await store.info(writer.ledger_id)).closed


async def test_a_ledger_that_a_worker_has_is_waited_for(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        ledger_id = await written(store, b"x")
        ((one, *_),) = await members(cluster, ledger_id)
        lock = marks_of(cluster).lock_of(ledger_id)
        await cluster.metadata.put(lock, b'bookieId: "worker:1"\n', ABSENT)
        recovery = recovery_of(cluster, client, one)
        assert await recovery.recover(ledger_id) == LockedElsewhere(), "who does not wait"
        holders = []
        wait = partial(recovery.recover, ledger_id, waits_for=holders.append)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            assert one in (await members(cluster, ledger_id))[0]
            assert holders == ["worker:1"]
            await remove(cluster.metadata, lock)
        assert one not in (await members(cluster, ledger_id))[0]


async def test_a_ledger_that_is_gone_needs_nothing(cluster):
    async with client_of(cluster) as client:
        recovery = recovery_of(cluster, client, "gone:1")
        assert await recovery.plan(99) == []
        assert await recovery.recover(99) is None


async def test_nothing_is_promised_where_there_is_no_other_bookie(cluster):
    async with cluster.client(4, 4, 2) as store, client_of(cluster) as client:
        ledger_id = await written(store, b"x")
        ((one, *_),) = await members(cluster, ledger_id)
        (planned,) = await recovery_of(cluster, client, one).plan(ledger_id)
        assert planned.replacements == {}
        with pytest.raises(Exception, match="no bookie can take the place"):
            await recovery_of(cluster, client, one).recover(ledger_id)
