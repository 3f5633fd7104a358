"""The ledger client on bookies that serve over the network."""

import pytest

from magnetar.core.ports.tests.contract_ledger_store import CHECKS


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_does_what_every_ledger_store_must(cluster, check, sizes):
    async with cluster.client(*sizes) as store:
        await check(store)
