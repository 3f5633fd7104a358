"""What a check of one ledger finds."""

import pytest
import trio
import trio.lowlevel

from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.tests.test_recovery import made, put
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication import ledger_checker
from magnetar.bookie.replication.ledger_checker import LedgerChecker
from magnetar.bookie.replication.tests.recovering import client_of, lose
from magnetar.core.ports.tests.contract_ledger_store import append


async def checked(cluster, client, ledger_id):
    ledger = await cluster.ledgers.read(ledger_id)
    found = await LedgerChecker(client).check(LedgerView(ledger_id, ledger, b""), ledger)
    return [(each.fragment.first, each.positions, each.absent) for each in found]


async def test_a_ledger_that_lacks_nothing(cluster):
    async with cluster.client(3, 2, 2) as store, client_of(cluster) as client:
        writer = await store.create({})
        await append(writer, b"a", b"b", b"c", b"d")
        assert await checked(cluster, client, writer.ledger_id) == []
        await writer.close()
        assert await checked(cluster, client, writer.ledger_id) == []


async def test_a_bookie_that_is_gone_and_one_that_lacks_entries(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        for entry_id, bookies in enumerate([(0, 1, 2), (0, 1)]):
            for bookie in bookies:
                await put(store, cluster.bookies[bookie], 7, entry_id, b"x", -1)

        def close(ledger):
            ledger.state, ledger.lastEntryId, ledger.length = ledger_metadata.CLOSED, 1, 200
            return True

        await cluster.ledgers.change(7, close)
        assert await checked(cluster, client, 7) == [(0, [2], [])]
        await lose(cluster, cluster.bookies[0].bookie_id)
        await client_knows(client, 3)
        assert await checked(cluster, client, 7) == [(0, [0, 2], [0])]


async def sparse(cluster, store, *lacking):
    """A closed ledger of ten entries, some of which the third bookie does not have."""
    await made(cluster, 7)
    for entry_id in range(10):
        for bookie in cluster.bookies[: 2 if entry_id in lacking else 3]:
            await put(store, bookie, 7, entry_id, b"x", -1)

    def close(ledger):
        ledger.state, ledger.lastEntryId, ledger.length = ledger_metadata.CLOSED, 9, 1000
        return True

    await cluster.ledgers.change(7, close)
    ledger = await cluster.ledgers.read(7)
    return LedgerView(7, ledger, b""), ledger


async def test_entries_in_the_middle_are_read_as_far_as_that_is_asked_for(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, 4)
        assert await LedgerChecker(client).check(view, ledger) == []
        (found,) = await LedgerChecker(client, 100).check(view, ledger)
        assert (found.positions, found.lacking) == ([2], {}), "who samples does not know all"


async def test_each_turn_reads_other_entries(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, 4)
        checker, found = LedgerChecker(client, 25), []
        for _ in range(8):
            found += [bool(await checker.check(view, ledger)) for _ in "ab"]
            checker.next_turn()
        assert sum(found) == 4
        assert found[::2] == found[1::2], "ledgers of one turn are read alike"
        assert found[:8] == found[8:]


async def test_all_entries_of_a_suspect_are_read(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, 4, 6, 9)
        suspects = {each.bookie_id for each in cluster.bookies}
        (found,) = await LedgerChecker(client).check(view, ledger, suspects)
        assert (found.positions, found.lacking) == ([2], {2: [4, 6, 9]})


@pytest.mark.parametrize("lacking", [range(10), range(6)])
async def test_a_bookie_that_lacks_much_is_replaced(cluster, monkeypatch, lacking):
    monkeypatch.setattr(ledger_checker, "LACKING_MAX", 5 if len(lacking) == 6 else 10)
    async with cluster.client() as store, client_of(cluster) as client:
        view, ledger = await sparse(cluster, store, *lacking)
        suspects = {each.bookie_id for each in cluster.bookies}
        (found,) = await LedgerChecker(client).check(view, ledger, suspects)
        assert (found.positions, found.lacking) == ([2], {})


async def client_knows(client, count):
    while len(client.bookies.writable) != count:
        await trio.lowlevel.checkpoint()


async def test_what_a_writer_has_not_confirmed_need_not_be_there(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        await put(store, cluster.bookies[0], 7, 0, b"x", -1)
        assert await checked(cluster, client, 7) == []


async def test_bookies_of_an_empty_ledger_are_missed_too(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        writer = await store.create({})
        await writer.close()
        ledger = await cluster.ledgers.read(writer.ledger_id)
        lost = ledger.segment[0].ensembleMember[1]
        await lose(cluster, lost)
        await client_knows(client, 3)
        assert await checked(cluster, client, writer.ledger_id) == [(0, [1], [1])]


async def test_fragments_of_bookies_on_their_way_out(cluster):
    await made(cluster, 7)
    ledger = await cluster.ledgers.read(7)
    ids = [each.bookie_id for each in cluster.bookies]
    async with client_of(cluster) as client:
        (found,) = LedgerChecker(client).without(ledger, {ids[1], ids[3]})
        assert (found.bookies, found.fragment.closed) == ([ids[1]], False)
