"""The ledger client on bookies that serve over the network."""

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed
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
