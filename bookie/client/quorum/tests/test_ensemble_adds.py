"""Adds while bookies fail: other bookies take their place, and nothing that is done is lost."""

import pytest
import trio
import trio.lowlevel

from magnetar.bookie.format import ledger_metadata
from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append


async def segments(cluster, ledger_id):
    ledger = await cluster.ledgers.read(ledger_id)
    return [(each.firstEntryId, tuple(each.ensembleMember)) for each in ledger.segment]


async def writer_of(store, *payloads):
    writer = await store.create({})
    if payloads:
        await append(writer, *payloads)
    return writer


async def test_a_killed_bookie_is_replaced(cluster):
    await cluster.start()
    async with cluster.client(3, 3, 2) as store:
        writer = await writer_of(store, b"0", b"1")
        ((_, before),) = await segments(cluster, writer.ledger_id)
        await cluster.bookie(before[1]).kill()
        await append(writer, b"2")
        await append(writer, b"3")
        (first, (begin, after)) = await segments(cluster, writer.ledger_id)
        assert first == (0, before)
        assert begin in (2, 3), "an add with its quorum is done before the failure is known"
        assert (after[0], after[2]) == (before[0], before[2])
        assert after[1] not in before
        assert await writer.read(0, 1, 100) == [b"0", b"1"]
        assert await writer.read(2, 3, 100) in ([b"2", b"3"], [b"2"])
        info = await writer.close()
        assert (info.last_entry_id, info.length) == (3, 4)


async def test_a_segment_without_entries_is_replaced(cluster):
    await cluster.start()
    async with cluster.client(3, 2, 2) as store:
        writer = await writer_of(store)
        ((_, before),) = await segments(cluster, writer.ledger_id)
        await cluster.bookie(before[0]).kill()
        await append(writer, *[b"%d" % i for i in range(50)])
        ((first, after),) = await segments(cluster, writer.ledger_id)
        assert (first, after[1:]) == (0, before[1:])
        assert await writer.read(0, 49, 1 << 20) == [b"%d" % i for i in range(50)]


async def test_without_a_substitute_it_goes_on_with_its_ack_quorum(cluster):
    async with cluster.client(3, 3, 2) as store:
        writer = await writer_of(store, b"0")
        ((_, before),) = await segments(cluster, writer.ledger_id)
        await cluster.bookie(before[0]).kill()
        for i in range(1, 20):
            await append(writer, b"%d" % i)
        assert await segments(cluster, writer.ledger_id) == [(0, before)]
        await cluster.start()
        with trio.fail_after(10):
            await cluster.changed(writer.ledger_id)
        (_, (begin, after)) = await segments(cluster, writer.ledger_id)
        assert (begin, after[0]) == (20, cluster.bookies[-1].bookie_id), "it was made good"
        await append(writer, b"20")
        reader = await store.open(writer.ledger_id, recover=True)
        assert reader.last_confirmed == 20
        found = await reader.read(0, 19, 1 << 20)
        assert found == [b"%d" % i for i in range(20)]


async def test_without_an_ack_quorum_it_fails(cluster):
    async with cluster.client(3, 3, 2) as store:
        writer = await writer_of(store, b"0")
        for bookie in cluster.bookies[:2]:
            await bookie.kill()
        outcome = Outcome(2)
        writer.append([b"1"], outcome)
        writer.append([b"2"], outcome)
        assert {type(error) for error in await outcome.wait()} == {StorageFailed}
        assert writer.last_confirmed == 0
        info = await writer.close()
        assert (info.last_entry_id, info.length) == (0, 1)


async def test_a_recovery_elsewhere_is_heard_of_by_a_change(cluster):
    """The writer finds the ledger in recovery before any bookie tells it."""
    await cluster.start()
    async with cluster.client(3, 3, 2) as store:
        writer = await writer_of(store, b"0")
        ((_, ensemble),) = await segments(cluster, writer.ledger_id)

        def take(ledger):
            ledger.state = ledger_metadata.IN_RECOVERY
            return True

        await cluster.ledgers.change(writer.ledger_id, take)
        await cluster.bookie(ensemble[0]).kill()
        outcome = Outcome(100)
        for _ in range(100):
            writer.append([b"x"], outcome)
            await trio.lowlevel.checkpoint()
        assert isinstance((await outcome.wait())[-1], Fenced)
        assert await segments(cluster, writer.ledger_id) == [(0, ensemble)]
        with pytest.raises(Fenced):
            await writer.close()


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)], ids=str)
async def test_nothing_that_is_done_is_lost_under_load(cluster, sizes):
    await cluster.start()
    async with cluster.client(*sizes) as store:
        writer = await writer_of(store)
        ((_, ensemble),) = await segments(cluster, writer.ledger_id)
        order = []
        outcome = Outcome(300)
        for i in range(300):
            payloads = [b"%d-%d" % (i, j) for j in range(5)]
            writer.append(payloads, lambda error, i=i: (order.append((i, error)), outcome(error)))
            if i == 150:
                await cluster.bookie(ensemble[1]).kill()
            if i % 10 == 0:
                await trio.lowlevel.checkpoint()
        assert set(await outcome.wait()) == {None}
        assert order == [(i, None) for i in range(300)]
        reader = await store.open(writer.ledger_id, recover=True)
        assert reader.last_confirmed == 1499
        found = []
        while len(found) < 1500:
            found += await reader.read(len(found), 1499, 1 << 20)
        assert found == [b"%d-%d" % (i, j) for i in range(300) for j in range(5)]
