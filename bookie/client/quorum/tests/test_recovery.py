"""Recoveries of ledgers whose writer is somewhere, or nowhere."""

import pytest
import trio
from msgspec.structs import replace

from magnetar.bookie.client.quorum.recovery import Recovery, ask_for_end
from magnetar.bookie.client.quorum.tests.bookies import QUICK
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.rpc.messages import Add, Added, Status
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.ports.tests.contract_ledger_store import append

KEY = digests.master_key(b"")


async def put(store, bookie, ledger_id, entry_id, payload, lac, kind=LedgerMetadata.CRC32C):
    """Store an entry at one bookie only, as a writer that dies between two sends."""
    header = DigestHeader(ledger_id, entry_id, lac, 100 * (entry_id + 1))
    entry = digests.seal_entry(digests.digest_type(kind, b""), header, payload)
    completion = Completion()
    connection = store._services.connections.to(bookie.bookie_id, 3)
    connection.ask(Add(ledger_id, entry_id, KEY, entry), completion.done)
    assert await completion.result() == Added(Status.OK, ledger_id, entry_id)


async def put_quorum(store, cluster, entry_id, payload=b"x", kind=LedgerMetadata.CRC32C):
    """Store an entry of ledger 7 at an ack quorum, which the writer did not live to see."""
    for bookie in (cluster.bookies[entry_id % 2], cluster.bookies[2]):
        await put(store, bookie, 7, entry_id, payload, -1, kind)


async def made(cluster, ledger_id, sizes=(3, 3, 2), kind=LedgerMetadata.CRC32C):
    ids = tuple(each.bookie_id for each in cluster.bookies[: sizes[0]])
    fresh = ledger_metadata.fresh(ids, sizes[1:], {}, 1, 1)
    fresh.digestType = kind
    await cluster.ledgers.create(ledger_id, fresh)


KINDS = ["CRC32C", "CRC32", "HMAC", "DUMMY"]


@pytest.mark.parametrize("name", KINDS)
async def test_what_an_ack_quorum_has_is_kept_and_stored_again(cluster, name):
    kind = LedgerMetadata.DigestType.Value(name)
    async with cluster.client() as store:
        await made(cluster, 7, kind=kind)
        for entry_id in range(5):
            await put_quorum(store, cluster, entry_id, b"x" * 100, kind)
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 4
        assert await reader.read(0, 4, 1 << 20) == [b"x" * 100] * 5
        info = await store.info(7)
        assert (info.closed, info.last_entry_id, info.length) == (True, 4, 500)
        await cluster.bookies[0].kill()
        assert await reader.read(0, 4, 1 << 20) == [b"x" * 100] * 5, "by an ack quorum"


@pytest.mark.parametrize(("entry_id", "lac"), [(2**63 - 1, 2**63 - 2), (2**50, 2**50 - 1), (9, 9)])
async def test_a_last_entry_that_no_writer_can_have_written_tells_nothing(cluster, entry_id, lac):
    async with cluster.client() as store:
        await made(cluster, 7)
        for each in range(3):
            await put_quorum(store, cluster, each)
        for bookie in cluster.bookies:
            connection = store._services.connections.to(bookie.bookie_id, 3)
            header = DigestHeader(7, entry_id, lac, 1)
            kind = digests.digest_type(LedgerMetadata.CRC32C, b"")
            completion = Completion()
            add = Add(7, entry_id, KEY, digests.seal_entry(kind, header, b"evil"))
            connection.ask(add, completion.done)
            assert await completion.result() == Added(Status.OK, 7, entry_id)
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 2
        assert await reader.read(0, 2, 100) == [b"x"] * 3


async def test_an_entry_behind_a_gap_was_never_confirmed(cluster):
    async with cluster.client() as store:
        await made(cluster, 7)
        await put_quorum(store, cluster, 0)
        await put_quorum(store, cluster, 2)
        reader = await store.open(7, recover=True)
        assert (reader.last_confirmed, (await store.info(7)).length) == (0, 100)


async def test_the_length_is_that_of_the_last_confirmed_if_there_is_no_more(cluster):
    async with cluster.client() as store:
        writer = await store.create({})
        await append(writer, b"abc")
        await append(writer, b"de")
        ledger_id = writer.ledger_id
        for bookie in cluster.bookies[:2]:  # tells that entry 1 is confirmed
            await put(store, bookie, ledger_id, 3, b"", 1)
        await store.open(ledger_id, recover=True)
        info = await store.info(ledger_id)
        assert (info.last_entry_id, info.length) == (1, 5)


async def test_a_last_entry_that_nobody_can_read_keeps_no_ledger_open(cluster):
    """It was confirmed, so the ledger ends there; its length is what a later entry tells."""
    async with cluster.client() as store:
        await made(cluster, 7)
        for bookie in cluster.bookies[:2]:
            await put(store, bookie, 7, 3, b"", 1)
        reader = await store.open(7, recover=True)
        info = await store.info(7)
        assert (info.closed, info.last_entry_id, info.length) == (True, 1, 400)
        with pytest.raises(Corrupted, match="confirmed and is lost"):
            await reader.read(1, 1, 100)


async def test_one_bookie_that_is_gone_does_not_stop_it_and_two_do(cluster):
    async with cluster.client() as store:
        first, second = await store.create({}), await store.create({})
        for writer in (first, second):
            await append(writer, b"abc", b"de")
        await cluster.bookies[0].kill()
        reader = await store.open(first.ledger_id, recover=True)
        assert reader.last_confirmed == 1
        await cluster.bookies[1].kill()
        with pytest.raises(StorageFailed):
            await store.open(second.ledger_id, recover=True)
        ledger = await cluster.ledgers.read(second.ledger_id)
        assert ledger.state == ledger_metadata.IN_RECOVERY, "it may be tried again"


async def test_the_ensembles_of_a_recovery_are_written_with_its_end(cluster):
    """Bookie 0 is dead, so what is stored again goes to another one."""
    await cluster.start()
    async with cluster.client() as store:
        await made(cluster, 7, (3, 3, 3))
        ids = [each.bookie_id for each in cluster.bookies]
        for entry_id in range(3):
            await put(store, cluster.bookies[1], 7, entry_id, b"x", -1)
            await put(store, cluster.bookies[2], 7, entry_id, b"x", -1)
        await cluster.bookies[0].kill()
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 2
        ledger = await cluster.ledgers.read(7)
        found = [(each.firstEntryId, list(each.ensembleMember)) for each in ledger.segment]
        assert found == [(0, [ids[3], *ids[1:3]])], "nothing was stored in a segment of its own"
        await cluster.bookies[1].kill()
        await cluster.bookies[2].kill()
        assert await reader.read(0, 2, 100) == [b"x"] * 3, "the new bookie has all"


async def test_two_recoveries_end_alike(cluster):
    async with cluster.client() as store, cluster.client() as other:
        writer = await store.create({})
        await append(writer, *[b"%d" % i for i in range(100)])
        ends = []

        async def open_it(one):
            ends.append((await one.open(writer.ledger_id, recover=True)).last_confirmed)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_it, store)
            nursery.start_soon(open_it, other)
        assert ends == [99, 99]


async def test_an_open_ledger_is_read_up_to_what_its_entries_tell(cluster):
    async with cluster.client() as store, cluster.client() as other:
        writer = await store.create({})
        for i in range(3):
            await append(writer, b"%d" % i)
        reader = await other.open(writer.ledger_id, recover=False)
        assert reader.last_confirmed == 1, "what the last entry tells"
        assert await reader.read(0, 5, 100) == [b"0", b"1"]
        await append(writer, b"3")
        end = await ask_for_end(other._services, writer.view, fence=False)
        assert end.last_confirmed == 2


async def test_many_entries_that_nobody_has_confirmed(cluster):
    """All are read and stored again, with a bounded number on their way."""
    async with cluster.client(recovery_reads_ahead=8) as store:
        await made(cluster, 7)
        for entry_id in range(100):
            await put_quorum(store, cluster, entry_id)
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 99


async def test_a_tail_for_which_connections_have_no_room_waits_and_no_bookie_is_to_blame(cluster):
    """All three refuse the same entry at the same time, and there is no fourth."""
    async with cluster.client(connection=replace(QUICK, adds_bytes_max=250_000)) as store:
        await made(cluster, 7)
        for entry_id in range(30):
            await put_quorum(store, cluster, entry_id, bytes(50_000))
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 29
        ledger = await cluster.ledgers.read(7)
        ids = [each.bookie_id for each in cluster.bookies]
        assert [list(each.ensembleMember) for each in ledger.segment] == [ids]
        await cluster.bookies[2].kill()
        found = []
        while len(found) < 30:
            found += await reader.read(len(found), 29, 1 << 20)
        assert found == [bytes(50_000)] * 30


async def test_what_a_recovery_has_under_way_is_bounded_by_bytes(cluster, monkeypatch):
    store_again, under_way = Recovery._store_again, []

    def note(self, entry):
        under_way.append(sum(size for size, _ in self._stores) + len(entry))
        return store_again(self, entry)

    monkeypatch.setattr(Recovery, "_store_again", note)
    async with cluster.client(recovery_bytes_max=210_000) as store:
        await made(cluster, 7)
        for entry_id in range(30):
            await put_quorum(store, cluster, entry_id, bytes(50_000))
        reader = await store.open(7, recover=True)
        assert reader.last_confirmed == 29
    assert len(under_way) == 30
    assert 100_000 < max(under_way) <= 210_000
