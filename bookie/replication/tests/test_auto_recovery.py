"""Lost bookies of a whole cluster: what the auditor finds, the worker repairs."""

import pytest

from magnetar.bookie.client.quorum.tests.bookies import local_cluster
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.ledger_checker import LedgerChecker
from magnetar.bookie.replication.tests.recovering import (
    client_of,
    lose,
    marks_of,
    members,
    recovering,
    until,
)
from magnetar.bookie.replication.tests.test_ledger_checker import sparse
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.ports.tests.contract_ledger_store import append

PAYLOADS = [b"entry %d" % number for number in range(50)]


async def written(store, payloads=PAYLOADS):
    writer = await store.create({})
    await append(writer, *payloads)
    return writer


async def is_without(cluster, ledger_id, bookie):
    found = await members(cluster, ledger_id)
    marked = await marks_of(cluster).marked(ledger_id)
    return marked is None and all(bookie not in each for each in found)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2), (3, 1, 1)])
async def test_what_a_lost_bookie_had_is_copied_to_another(cluster, sizes):
    async with cluster.client(*sizes) as store:
        writer = await written(store)
        await writer.close()
        ((lost, *kept),) = await members(cluster, writer.ledger_id)
        if sizes[1] == 1:  # there is no other copy: it must be there to be read
            await cluster.unregister(lost)
        else:
            await lose(cluster, lost)
        async with recovering(cluster) as recovery:
            await until(cluster, lambda: is_without(cluster, writer.ledger_id, lost))
            assert recovery.counters.ledgers_replicated == 1
        ((new, *others),) = await members(cluster, writer.ledger_id)
        assert (others, new in kept) == (kept, False)
        reader = await store.open(writer.ledger_id, recover=False)
        assert await reader.read(0, 49, 1 << 20) == PAYLOADS
        if sizes[1] == 3:
            for bookie in kept:
                await cluster.bookie(bookie).kill()
            assert await reader.read(0, 49, 1 << 20) == PAYLOADS, "the new bookie has all"


async def test_what_another_auditor_has_found_between_the_first_and_the_last_entry(cluster):
    """Ours reads no such entries: they are found because of the mark, wherever they lack."""
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, 4)
        lacking = cluster.bookies[2].bookie_id
        checker = LedgerChecker(client)
        assert await checker.check(view, ledger) == []
        assert await checker.check(view, ledger, {lacking})
        async with recovering(cluster):
            await marks_of(cluster).mark(7, {lacking}, SystemClock().wall_ms())
            await until(cluster, lambda: is_unmarked(cluster, 7))
        assert await checker.check(view, ledger, {lacking}) == []


async def is_unmarked(cluster, ledger_id):
    return await marks_of(cluster).marked(ledger_id) is None


async def test_an_open_ledger_is_recovered_after_a_grace_period(cluster):
    async with cluster.client(3, 3, 2) as store:
        writer = await written(store)
    ((lost, *_),) = await members(cluster, writer.ledger_id)
    await lose(cluster, lost)
    async with recovering(cluster) as recovery:
        await until(cluster, lambda: is_without(cluster, writer.ledger_id, lost))
        assert recovery.counters.ledgers_recovered == 1
    ledger = await cluster.ledgers.read(writer.ledger_id)
    assert (ledger.state, ledger.lastEntryId) == (ledger_metadata.CLOSED, 49)


async def test_a_writer_that_replaces_the_bookie_itself_keeps_its_ledger(cluster):
    async with cluster.client(3, 3, 2) as store:
        writer = await written(store)
        ((lost, *_),) = await members(cluster, writer.ledger_id)
        await lose(cluster, lost)
        async with recovering(cluster) as recovery:
            await append(writer, b"more")
            await cluster.changed(writer.ledger_id)
            await until(cluster, lambda: is_without(cluster, writer.ledger_id, lost))
            assert recovery.counters.ledgers_recovered == 0
        await append(writer, b"and more")
        assert (await writer.close()).last_entry_id == 51
        first, second = await members(cluster, writer.ledger_id)
        assert lost not in first + second


async def test_a_ledger_that_nobody_can_repair_stays_with_its_writer(tmp_path):
    """Three bookies, and one is lost: closing the ledger would help nobody."""
    async with local_cluster(tmp_path, 3) as cluster, cluster.client(3, 3, 2) as store:
        writer = await written(store)
        closed = await written(store)
        await closed.close()
        ((lost, *_),) = await members(cluster, writer.ledger_id)
        await lose(cluster, lost)
        marks = marks_of(cluster)

        async def both_wait():
            return recovery.counters.ledgers_deferred >= 2

        async with recovering(cluster) as recovery:
            await until(cluster, both_wait)
            for ledger in (writer, closed):
                found, _ = await marks.marked(ledger.ledger_id)
                assert found.missing == (lost,)
            await append(writer, b"more")
            await cluster.start()
            await until(cluster, lambda: is_without(cluster, closed.ledger_id, lost))
            assert recovery.counters.ledgers_recovered == 0
