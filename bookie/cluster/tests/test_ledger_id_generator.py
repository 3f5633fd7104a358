import trio

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.kernel.errors import StorageFull
from magnetar.core.metadata.memory import MemoryMetadata

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "x")
LAST = 2**31 - 2


async def test_ids_of_31_bits_come_first() -> None:
    store = MemoryMetadata()
    ids = LedgerIdGenerator(store, CLUSTER)
    assert [await ids.next() for _ in range(3)] == [0, 1, 2]
    assert await LedgerIdGenerator(store, CLUSTER).next() == 3


async def test_then_ids_of_63() -> None:
    store = MemoryMetadata()
    store._counters["/ledgers/idgen"] = LAST
    ids = LedgerIdGenerator(store, CLUSTER)
    assert [await ids.next() for _ in range(3)] == [LAST, 1 << 32, (1 << 32) + 1]
    assert await store.children("/ledgers/idgen-long") == ["HOB-0000000001"]
    store._counters["/ledgers/idgen"] = 5
    assert await LedgerIdGenerator(store, CLUSTER).next() == (1 << 32) + 2, (
        "the short ones are over"
    )


async def test_full_high_bits_have_a_successor() -> None:
    store = MemoryMetadata()
    await store.put("/ledgers/idgen-long/HOB-0000000002", b"", -1)
    await store.put("/ledgers/idgen-long/HOB-0000000010", b"", -1)
    await store.put("/ledgers/idgen-long/else", b"", -1)
    store._counters["/ledgers/idgen-long/HOB-0000000010"] = LAST
    ids = LedgerIdGenerator(store, CLUSTER)
    assert [await ids.next() for _ in range(3)] == [(10 << 32) + LAST, 11 << 32, (11 << 32) + 1]


async def test_two_clients_at_the_edge() -> None:
    store = MemoryMetadata()
    store._counters["/ledgers/idgen"] = LAST - 5
    found: list[int] = []

    async def take() -> None:
        ids = LedgerIdGenerator(store, CLUSTER)
        for _ in range(10):
            found.append(await ids.next())
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        nursery.start_soon(take)
    assert len(set(found)) == 20
    assert sorted(found)[:6] == list(range(LAST - 5, LAST + 1))


async def test_a_counter_that_says_it_is_used_up() -> None:
    class Full(MemoryMetadata):
        async def next(self, path: str) -> int:
            if path == "/ledgers/idgen":
                raise StorageFull("no more numbers")
            return await super().next(path)

    assert await LedgerIdGenerator(Full(), CLUSTER).next() == 1 << 32
