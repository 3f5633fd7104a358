"""Repairs of one ledger, and who may come between."""

from functools import partial

import pytest
import trio

from magnetar.bookie.client.quorum.tests.bookies import local_cluster
from magnetar.bookie.client.quorum.tests.test_recovery import made, put
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.fragment_replicator import FragmentReplicator
from magnetar.bookie.replication.ledger_repair import LedgerCondition, LedgerRepair
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.replication.tests.recovering import HASTY, client_of, lose, members
from magnetar.bookie.replication.tests.test_fragment_replicator import closed
from magnetar.bookie.replication.tests.test_ledger_checker import client_knows, sparse
from magnetar.core.kernel.errors import LedgerNotFound, StorageFailed
from magnetar.core.ports.tests.contract_ledger_store import append


def repair_of(client):
    return LedgerRepair(client, HASTY, ReplicationCounters())


async def written(store, *payloads):
    writer = await store.create({})
    await append(writer, *payloads)
    await writer.close()
    return writer.ledger_id


async def test_a_bookie_that_runs_and_lacks_entries_gets_them_if_there_is_no_other(tmp_path):
    async with local_cluster(tmp_path, 3) as cluster, cluster.client() as store:
        await made(cluster, 7)
        for bookie in cluster.bookies[:2]:
            await put(store, bookie, 7, 0, b"x", -1)
        await closed(cluster, 1)
        before = await members(cluster, 7)
        async with client_of(cluster) as client:
            assert await repair_of(client).repair(7) is LedgerCondition.WHOLE
        assert await members(cluster, 7) == before


async def test_a_bookie_gets_the_single_entries_that_it_lacks_and_stays(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, 4, 6)
        before = await members(cluster, 7)
        suspects = {cluster.bookies[2].bookie_id}
        repair = repair_of(client)
        assert await repair.repair(7) is LedgerCondition.WHOLE
        assert await repair.checker.check(view, ledger, suspects), "not without suspects"
        assert await repair.repair(7, suspects) is LedgerCondition.WHOLE
        assert await members(cluster, 7) == before
        assert await repair.checker.check(view, ledger, suspects) == []


async def test_a_bookie_that_cannot_get_them_is_replaced(cluster, monkeypatch):
    async with cluster.client() as store, client_of(cluster) as client:
        await sparse(cluster, store, 4)
        lacking = cluster.bookies[2].bookie_id
        copies = FragmentReplicator.replicate

        async def refused(self, view, fragment, bookies, entries=None):
            if entries is not None:
                raise StorageFailed("read-only since")
            await copies(self, view, fragment, bookies)

        monkeypatch.setattr(FragmentReplicator, "replicate", refused)
        assert await repair_of(client).repair(7, {lacking}) is LedgerCondition.WHOLE
        assert lacking not in (await members(cluster, 7))[0]


async def test_an_ensemble_that_another_client_changes_meanwhile_is_looked_at_again(cluster):
    async with cluster.client(4, 4, 2) as store, client_of(cluster) as client:
        await cluster.start(2)
        await client_knows(client, 6)
        ledger_id = await written(store, b"x")
        ((lost, *_),) = await members(cluster, ledger_id)
        await lose(cluster, lost)
        await client_knows(client, 5)
        repair = repair_of(client)
        view, (bad,) = await repair.without(ledger_id, {lost})
        spares = set(client.bookies.writable) - set(bad.fragment.ensemble)

        def change(ledger):  # as by a worker that had the lock before
            ledger.segment[0].ensembleMember[3] = min(spares)
            return True

        await cluster.ledgers.change(ledger_id, change)
        changed = await members(cluster, ledger_id)
        await repair.restore(view, bad)
        assert await members(cluster, ledger_id) == changed
        assert await repair.repair(ledger_id) is LedgerCondition.WHOLE
        ((first, *_),) = await members(cluster, ledger_id)
        assert first != lost


async def test_a_ledger_that_is_deleted_meanwhile(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        ledger_id = await written(store, b"x")
        ((lost, *_),) = await members(cluster, ledger_id)
        await lose(cluster, lost)
        await client_knows(client, 3)
        repair = repair_of(client)
        view, (bad,) = await repair.without(ledger_id, {lost})
        await store.delete(ledger_id)
        with pytest.raises(LedgerNotFound):
            await repair.restore(view, bad)
        with pytest.raises(LedgerNotFound):
            await repair.repair(ledger_id)


async def test_what_one_fragment_lacks_does_not_keep_others_from_being_restored(cluster):
    """Entry 0 is nowhere; the second segment is restored all the same."""
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        ids = [each.bookie_id for each in cluster.bookies]

        def change(ledger):
            ledger.segment.add(firstEntryId=1, ensembleMember=[ids[1], ids[0], ids[2]])
            ledger.state, ledger.lastEntryId = ledger_metadata.CLOSED, 1
            return True

        await cluster.ledgers.change(7, change)
        for bookie in cluster.bookies[1:3]:
            await put(store, bookie, 7, 1, b"x", 0)
        await lose(cluster, ids[0])
        await client_knows(client, 3)
        assert await repair_of(client).repair(7) is LedgerCondition.INCOMPLETE
        first, second = await members(cluster, 7)
        assert (ids[0] in first, ids[0] in second) == (True, False)


async def test_bookies_that_run_can_be_emptied_by_hand(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        await cluster.start()
        await client_knows(client, 5)
        writer = await store.create({})
        await append(writer, b"x", b"y")
        ((one, other, _),) = await members(cluster, writer.ledger_id)
        assert await repair_of(client).replace(writer.ledger_id, {one, other}) == 1
        ((first, second, _),) = await members(cluster, writer.ledger_id)
        assert {first, second} == set(client.bookies.writable) - {one, other, _}
        assert (await store.info(writer.ledger_id)).closed
        assert await repair_of(client).replace(writer.ledger_id, {one, other}) == 0


async def test_too_few_bookies_are_an_error_by_hand(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        ledger_id = await written(store, b"x")
        ((one, other, _),) = await members(cluster, ledger_id)
        with pytest.raises(StorageFailed, match="too few"):
            await repair_of(client).replace(ledger_id, {one, other})
        ((first, second, _),) = await members(cluster, ledger_id)
        assert len({first, second} & {one, other}) == 1, "one could be replaced"


async def test_a_recovery_of_the_same_ledger_at_the_same_time(cluster):
    """The first segment is copied while the second is recovered: both are in the metadata."""
    async with cluster.client() as store, client_of(cluster) as client:
        await cluster.start()
        await client_knows(client, 5)
        await made(cluster, 7)
        ids = [each.bookie_id for each in cluster.bookies]

        def change(ledger):
            ledger.segment.add(firstEntryId=1, ensembleMember=[ids[3], ids[1], ids[2]])
            return True

        for bookie in cluster.bookies[:3]:
            await put(store, bookie, 7, 0, b"x", -1)
        await cluster.ledgers.change(7, change)
        for bookie in cluster.bookies[1:4]:
            await put(store, bookie, 7, 1, b"y", 0)
        await lose(cluster, ids[0])
        await client_knows(client, 4)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(repair_of(client).repair, 7)
            nursery.start_soon(partial(store.open, 7, recover=True))
        first, second = await members(cluster, 7)
        assert (ids[0] in first, second) == (False, [ids[3], ids[1], ids[2]])
        ledger = await cluster.ledgers.read(7)
        assert (ledger.state, ledger.lastEntryId) == (ledger_metadata.CLOSED, 1)
        reader = await store.open(7, recover=False)
        assert await reader.read(0, 1, 100) == [b"x"]
        assert await reader.read(1, 1, 100) == [b"y"]


async def test_an_open_ledger_may_be_taken_whatever_else_it_lacks(cluster):
    """Entry 0 is nowhere; the last ensemble has lost a bookie, and can be recovered still."""
    async with cluster.client() as store, client_of(cluster) as client:
        await cluster.start()
        await client_knows(client, 5)
        await made(cluster, 7)
        ids = [each.bookie_id for each in cluster.bookies]

        def change(ledger):
            ledger.segment.add(firstEntryId=1, ensembleMember=[ids[1], ids[0], ids[2]])
            return True

        await cluster.ledgers.change(7, change)
        for bookie in cluster.bookies[1:3]:
            await put(store, bookie, 7, 1, b"x", 0)
        await lose(cluster, ids[0])
        await client_knows(client, 4)
        repair = repair_of(client)
        assert await repair.repair(7) is LedgerCondition.OPEN
        await repair.end_grace(7)
        assert (await store.info(7)).closed


async def test_a_list_of_bookies_that_is_old_does_not_take_a_ledger_from_its_writer(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        await client_knows(client, 4)
        writer = await store.create({})
        await append(writer, b"x")
        bookies, repair = client.bookies, repair_of(client)
        lost = (await members(cluster, writer.ledger_id))[0][0]
        everybody = bookies.writable
        bookies.writable = {each: info for each, info in everybody.items() if each != lost}
        assert await repair.repair(writer.ledger_id) is LedgerCondition.OPEN
        await repair.end_grace(writer.ledger_id)
        assert not (await store.info(writer.ledger_id)).closed
        await append(writer, b"y")


async def test_a_list_of_bookies_that_is_old_does_not_make_a_ledger_whole(cluster):
    """It has no entry, so nobody is asked for any."""
    async with client_of(cluster) as client:
        await client_knows(client, 4)
        await made(cluster, 7)
        bookies, before = client.bookies, client.bookies.writable
        repair = repair_of(client)
        assert await repair.repair(7) is LedgerCondition.WHOLE
        await lose(cluster, (await members(cluster, 7))[0][0])
        await client_knows(client, 3)
        bookies.writable = before
        assert await repair.repair(7) is LedgerCondition.INCOMPLETE


async def test_by_hand_nothing_is_called_done_that_another_client_has_changed(cluster, monkeypatch):
    async with cluster.client() as store, client_of(cluster) as client:
        await cluster.start(2)
        await client_knows(client, 6)
        ledger_id = await written(store, b"x")
        ((lost, *_),) = await members(cluster, ledger_id)
        copy = FragmentReplicator.replicate

        def change(ledger):
            spares = set(client.bookies.writable) - set(ledger.segment[0].ensembleMember)
            ledger.segment[0].ensembleMember[1] = min(spares)
            return True

        async def copy_and_be_late(*arguments):
            await copy(*arguments)
            await cluster.ledgers.change(ledger_id, change)

        monkeypatch.setattr(FragmentReplicator, "replicate", copy_and_be_late)
        with pytest.raises(StorageFailed, match="another client"):
            await repair_of(client).replace(ledger_id, {lost})
