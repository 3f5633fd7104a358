"""Audits of all ledgers of a cluster."""

import pytest
import trio

from magnetar.bookie.client.quorum.tests.test_recovery import made, put
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.audits import Audits, for_each
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.replication.tests.recovering import client_of, lose, marks_of
from magnetar.bookie.replication.tests.test_fragment_replicator import closed
from magnetar.bookie.replication.tests.test_ledger_checker import client_knows, sparse
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Corrupted, NotAllowed, StorageFailed
from magnetar.core.ports.metadata_store import ABSENT


def audits_of(cluster, client, **settings):
    return Audits(
        client,
        marks_of(cluster),
        SystemClock(),
        ReplicationCounters(),
        RecoverySettings(**settings),
    )


async def missing(cluster, ledger_id):
    found = await marks_of(cluster).marked(ledger_id)
    return None if found is None else found[0].missing


async def test_ledgers_of_lost_bookies_are_marked(cluster):
    ids = [each.bookie_id for each in cluster.bookies]
    for ledger_id in range(3):
        ensemble = tuple(ids[(ledger_id + i) % 4] for i in range(3))
        await cluster.ledgers.create(ledger_id, ledger_metadata.fresh(ensemble, (3, 2), {}, 1, 1))
    async with client_of(cluster) as client:
        await audits_of(cluster, client).audit_bookies()
        assert [await missing(cluster, i) for i in range(3)] == [None] * 3
        await lose(cluster, ids[0])
        await client_knows(client, 3)
        await audits_of(cluster, client).audit_bookies()
        assert [await missing(cluster, i) for i in range(3)] == [(ids[0],), None, (ids[0],)]


async def test_some_checks_read_all_entries(cluster):
    """Also where there are as many ledgers as checks that it takes."""
    for ledger_id in (0, 1, 2):
        await cluster.ledgers.create(
            ledger_id, ledger_metadata.fresh((cluster.bookies[0].bookie_id,), (1, 1), {}, 1, 1)
        )
    async with cluster.client() as store, client_of(cluster) as client:
        await sparse(cluster, store, 4)
        audits = audits_of(cluster, client, verification_percentage=25)
        for _ in range(4):
            await audits.check_all_ledgers()
        assert await missing(cluster, 7) == (cluster.bookies[2].bookie_id,)


async def test_a_list_that_may_not_be_whole_is_no_list(cluster):
    await made(cluster, 7)
    await cluster.metadata.put("/ledgers/00/0000/oddity", b"", ABSENT)
    async with client_of(cluster) as client:
        audits = audits_of(cluster, client)
        with pytest.raises(Corrupted):
            await audits.audit_bookies()
        with pytest.raises(Corrupted):
            await audits.check_all_ledgers()
    assert await marks_of(cluster).checked_ms() is None


async def test_nothing_is_marked_when_no_bookie_is_there(cluster):
    await made(cluster, 7)
    for bookie in cluster.bookies:
        await cluster.unregister(bookie.bookie_id)
    async with client_of(cluster) as client:
        with pytest.raises(StorageFailed):
            await audits_of(cluster, client).audit_bookies()
    assert await missing(cluster, 7) is None


async def test_nothing_is_marked_once_that_is_disabled(cluster):
    await made(cluster, 7)
    await marks_of(cluster).disable()
    await lose(cluster, cluster.bookies[0].bookie_id)
    async with client_of(cluster) as client:
        with pytest.raises(NotAllowed):
            await audits_of(cluster, client).audit_bookies()


async def test_a_ledger_without_sense_does_not_keep_others_from_being_audited(cluster):
    await made(cluster, 7)
    await cluster.metadata.put(cluster.cluster.ledger(6), b"?", ABSENT)
    lost = cluster.bookies[0].bookie_id
    await lose(cluster, lost)
    async with client_of(cluster) as client:
        await audits_of(cluster, client).audit_bookies()
    assert await missing(cluster, 7) == (lost,)


async def test_a_check_of_all_ledgers_finds_lost_entries(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        for bookie in cluster.bookies[:2]:
            await put(store, bookie, 7, 0, b"x", -1)
        await closed(cluster, 1)
        await audits_of(cluster, client).check_all_ledgers()
    assert await missing(cluster, 7) == (cluster.bookies[2].bookie_id,)
    assert await marks_of(cluster).checked_ms() is not None


async def test_bookies_may_be_marked_by_name(cluster):
    await made(cluster, 7)
    ids = [each.bookie_id for each in cluster.bookies]
    seen = []
    async with client_of(cluster) as client:
        audits = audits_of(cluster, client)
        assert await audits.mark_bookies([ids[1], ids[3]], seen.append) == [7]
        assert await audits.mark_bookies([ids[3]]) == []
    assert await missing(cluster, 7) == (ids[1],)
    assert seen == [1]


async def test_the_first_error_ends_it():
    done = []

    async def work(number):
        await trio.lowlevel.checkpoint()
        if number == 3:
            raise StorageFailed("x")
        done.append(number)

    with pytest.raises(StorageFailed):
        await for_each(range(100), 2, work)
    assert len(done) < 6
