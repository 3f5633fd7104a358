"""Reads of a ledger whose bookies are gone, or have not all entries, or have them damaged."""

import pytest

from magnetar.bookie.client.quorum.tests.test_recovery import KINDS, made, put
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead
from magnetar.core.kernel.errors import Corrupted, StorageFailed, WireError
from magnetar.core.ports.tests.contract_ledger_store import append


async def closed(cluster, ledger_id, last):
    def close(ledger):
        ledger.state, ledger.lastEntryId, ledger.length = ledger_metadata.CLOSED, last, 100
        return True

    await cluster.ledgers.change(ledger_id, close)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)], ids=str)
async def test_any_digest_in_batches_and_one_by_one(cluster, name, sizes):
    kind = LedgerMetadata.DigestType.Value(name)
    async with cluster.client() as store:
        await made(cluster, 7, sizes, kind)
        for entry_id in range(20):
            for bookie in cluster.bookies:
                await put(store, bookie, 7, entry_id, b"%02d" % entry_id, -1, kind)
        await closed(cluster, 7, 19)
        reader = await store.open(7, recover=False)
        expected = [b"%02d" % i for i in range(20)]
        assert await reader.read(0, 19, 1 << 20) == expected
        assert await reader.read(3, 19, 9) == expected[3:7]
        assert await reader.read(19, 99, 1) == expected[19:]
        assert reader.read_at_once(0, 9, 100) == []
        assert await reader.damage(4) == (4, 4)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)], ids=str)
async def test_what_is_damaged_or_missing_is_read_from_another(cluster, sizes):
    async with cluster.client() as store:
        await made(cluster, 7, sizes)
        for entry_id in range(6):
            place = entry_id % 3
            good, bad = cluster.bookies[place], cluster.bookies[(place + 1) % 3]
            await put(store, good, 7, entry_id, b"%d" % entry_id, -1)
            if entry_id != 3:  # that one is missing elsewhere
                await put(store, bad, 7, entry_id, b"?", -1, LedgerMetadata.HMAC)
        await closed(cluster, 7, 5)
        reader = await store.open(7, recover=False)
        found = []
        while len(found) < 6:
            found += await reader.read(len(found), 5, 1 << 20)
        assert found == [b"%d" % i for i in range(6)]


async def test_a_confirmed_entry_that_nobody_has_is_lost(cluster):
    async with cluster.client() as store:
        await made(cluster, 7)
        await closed(cluster, 7, 3)
        reader = await store.open(7, recover=False)
        with pytest.raises(Corrupted, match="entry 7:2 was confirmed and is lost"):
            await reader.read(2, 3, 100)


async def test_without_its_bookies_a_ledger_cannot_be_read_until_they_are_replaced(cluster):
    await cluster.start()
    async with cluster.client() as store:
        await made(cluster, 7)
        await put(store, cluster.bookies[3], 7, 0, b"copy", -1)
        await closed(cluster, 7, 0)
        reader = await store.open(7, recover=False)
        for bookie in cluster.bookies[:3]:
            await bookie.kill()
        with pytest.raises(StorageFailed):
            await reader.read(0, 0, 100)

        def replace(ledger):
            ledger.segment[0].ensembleMember[1] = cluster.bookies[3].bookie_id
            return True

        await cluster.ledgers.change(7, replace)
        assert await reader.read(0, 0, 100) == [b"copy"]


async def test_one_bookie_after_the_other_is_killed(cluster):
    async with cluster.client() as store:
        writer = await store.create({})
        payloads = [b"x" * 1000] * 500
        await append(writer, *payloads)
        for bookie in cluster.bookies[:2]:
            found = []
            while len(found) < 500:
                found += await writer.read(len(found), 499, 1 << 20)
            assert found == payloads
            await bookie.kill()
        assert (await writer.read(0, 0, 1)) == payloads[:1]


async def test_bookies_that_know_no_batches_are_asked_for_single_entries(cluster, monkeypatch):
    """Those before 4.17 end the connection, which must not be that of the adds."""
    parse, batches = version2.parse_request, []

    def parse_as_before(frame):
        header, request = parse(frame)
        if isinstance(request, BatchRead):
            batches.append(request)
            raise WireError("an unknown operation")
        return header, request

    monkeypatch.setattr(version2, "parse_request", parse_as_before)
    async with cluster.client() as store:
        writer = await store.create({})
        expected = [b"%d" % i for i in range(50)]
        await append(writer, *expected)
        for _ in range(3):
            assert await writer.read(0, 49, 1 << 20) == expected
        assert len(batches) == 3, "one of each bookie, and no more"
        await append(writer, b"next")
        assert len((await cluster.ledgers.read(writer.ledger_id)).segment) == 1
        connections = store._services.connections
        for bookie in cluster.bookies:
            assert connections.refuses_batches(bookie.bookie_id)
            assert connections.failed_at(bookie.bookie_id) is None
