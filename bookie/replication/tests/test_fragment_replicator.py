"""Copies of fragments: byte for byte, where they belong, and nowhere else."""

import pytest
from msgspec.structs import replace

from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.tests.test_recovery import KINDS, made, put
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.fragment_replicator import FragmentReplicator
from magnetar.bookie.replication.fragments import fragments_of
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.replication.tests.recovering import HASTY, client_of, lose
from magnetar.bookie.rpc.messages import Read
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, StorageFailed


async def entry_at(client, bookie, entry_id):
    """What one bookie has of an entry of ledger 7."""
    completion = Completion()
    client.services.connections.to(bookie.bookie_id).ask(Read(7, entry_id), completion.done)
    return (await completion.result()).entry


async def closed(cluster, count):
    def close(ledger):
        ledger.state, ledger.lastEntryId = ledger_metadata.CLOSED, count - 1
        return True

    return await cluster.ledgers.change(7, close)


async def copied(cluster, client, bookies, settings=HASTY):
    counters = ReplicationCounters()
    ledger = await cluster.ledgers.read(7)
    view = LedgerView(7, ledger, b"")
    (fragment,) = fragments_of(ledger, -1)
    await FragmentReplicator(client, settings, counters).replicate(view, fragment, bookies)
    return counters


@pytest.mark.parametrize("kind", KINDS)
async def test_a_copy_is_what_was_read_byte_for_byte(cluster, kind):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7, kind=LedgerMetadata.DigestType.Value(kind))
        for entry_id in range(12):
            for bookie in old:
                kinds = LedgerMetadata.DigestType.Value(kind)
                await put(store, bookie, 7, entry_id, b"%d" % entry_id, 3, kinds)
        await closed(cluster, 12)
        counters = await copied(cluster, client, {1: new.bookie_id})
        assert (counters.entries_read, counters.entries_written) == (12, 12)
        for entry_id in range(12):
            first, last = (
                await entry_at(client, old[0], entry_id),
                await entry_at(client, new, entry_id),
            )
            assert first == last is not None


async def test_a_position_gets_only_what_it_stores(cluster):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7, (3, 2, 2))
        for entry_id in range(9):
            for position in (entry_id % 3, (entry_id + 1) % 3):
                await put(store, old[position], 7, entry_id, b"x", -1)
        await closed(cluster, 9)
        await copied(cluster, client, {0: new.bookie_id})
        found = [await entry_at(client, new, entry_id) is not None for entry_id in range(9)]
        assert found == [(0 - entry_id) % 3 < 2 for entry_id in range(9)]


async def test_an_entry_that_cannot_be_read_is_an_error(cluster):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        await put(store, old[0], 7, 0, b"x", -1)
        await closed(cluster, 2)
        with pytest.raises(BrokerError):
            await copied(cluster, client, {1: new.bookie_id})


async def test_a_bookie_that_cannot_store_is_an_error(cluster):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        await put(store, old[0], 7, 0, b"x", -1)
        await closed(cluster, 1)
        await lose(cluster, new.bookie_id)
        with pytest.raises(BrokerError):
            await copied(cluster, client, {1: new.bookie_id})


async def test_large_entries_come_in_small_batches(cluster):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        for entry_id in range(30):
            await put(store, old[0], 7, entry_id, bytes(1000), -1)
        await closed(cluster, 30)
        settings = replace(HASTY, batch_bytes=3000, bytes_per_second_max=10_000_000)
        counters = await copied(cluster, client, {1: new.bookie_id}, settings)
        assert counters.entries_written == 30


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)])
async def test_what_one_bookie_lacks_is_read_from_another(cluster, sizes):
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7, sizes)
        for entry_id in range(12):  # each at one bookie only
            await put(store, old[entry_id % 3], 7, entry_id, b"%d" % entry_id, -1)
        await closed(cluster, 12)
        await copied(cluster, client, {1: new.bookie_id})
        for entry_id in range(12):
            found = await entry_at(client, new, entry_id)
            expected = await entry_at(client, old[entry_id % 3], entry_id)
            assert found == (expected if (1 - entry_id) % 3 < sizes[1] else None)


async def test_bookies_that_give_no_batches_are_asked_entry_by_entry(cluster, monkeypatch):
    async def refused(*_):
        raise StorageFailed("it has closed the connection")

    monkeypatch.setattr(QuorumReader, "read_run", refused)
    *old, new = cluster.bookies
    async with cluster.client() as store, client_of(cluster) as client:
        await made(cluster, 7)
        for entry_id in range(30):
            await put(store, old[0], 7, entry_id, b"x", -1)
        await closed(cluster, 30)
        counters = await copied(cluster, client, {1: new.bookie_id})
        assert counters.entries_written == 30
