"""The ledger client on bookies that serve over the network."""

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.ledger_store import Quorums
from magnetar.core.ports.tests.contract_ledger_store import CHECKS


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_does_what_every_ledger_store_must(cluster, check, sizes):
    async with cluster.client(*sizes) as store:
        await check(store)


async def test_too_few_bookies_are_told(cluster, caplog):
    needed = "storage takes no writes: fewer than 3 bookies take writes"
    async with cluster.client() as store:
        assert store.writable()
        assert caplog.messages == []
        heard = trio.Event()
        store.bookies.tell(heard.set)
        await cluster.unregister(cluster.bookies[0].bookie_id)
        await heard.wait()
        assert (store.writable(), store.refusal()) == (False, needed)
        with pytest.raises(StorageFailed, match="a ledger needs 3 bookies, and 2 take writes"):
            await store.create({})
        heard = trio.Event()
        store.bookies.tell(heard.set)
        await cluster.start()
        await heard.wait()
        await store.create({})
    async with cluster.client(5, 5, 3) as store:
        assert not store.writable()
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "fewer than 3 bookies take writes",
        "3 bookies take writes",
        "fewer than 5 bookies take writes",
    ]


async def test_a_ledger_has_the_sizes_that_are_asked_for(cluster, caplog):
    async with cluster.client(1, 1, 1) as store:
        assert store.writable(Quorums(3, 2, 2))
        writer = await store.create({}, Quorums(3, 2, 2))
        usual = await store.create({})
        sizes = [(each.view.striping, len(each.view.last_segment[1])) for each in (writer, usual)]
        assert sizes == [((3, 2, 2), 3), ((1, 1, 1), 1)]
        with pytest.raises(StorageFailed, match="a ledger needs 4 bookies, and 3 take writes"):
            await store.create({}, Quorums(4, 2, 2))
        assert store.refusal(Quorums(4, 2, 2)).endswith("fewer than 4 bookies take writes")
        assert not store.writable(Quorums(4, 2, 2))
        assert store.writable()
    assert caplog.messages == []
