"""The retirement of a stopped bookie."""

import pytest
import trio

from magnetar.bookie.replication.decommission import Decommission
from magnetar.bookie.replication.tests.recovering import (
    client_of,
    lose,
    marks_of,
    members,
    recovering,
)
from magnetar.bookie.replication.tests.test_audits import audits_of
from magnetar.bookie.replication.tests.test_ledger_checker import client_knows
from magnetar.bookie.replication.tests.test_ledger_repair import written
from magnetar.core.kernel.errors import NotAllowed


def decommission_of(cluster, client):
    return Decommission(client, marks_of(cluster), audits_of(cluster, client))


async def test_it_waits_until_no_ledger_has_the_bookie(cluster):
    async with cluster.client() as store, client_of(cluster) as client:
        ids = [await written(store, b"x") for _ in range(8)]
        lost = cluster.bookies[0].bookie_id
        before = [one for one in ids if lost in (await members(cluster, one))[0]]
        await lose(cluster, lost)
        await client_knows(client, 3)
        left = []
        async with recovering(cluster):
            with trio.fail_after(20):
                total = await decommission_of(cluster, client).run(lost, left.append)
        assert (total, left[0], left[-1]) == (len(before), len(before), 0)
        for one in ids:
            assert lost not in (await members(cluster, one))[0]


async def test_a_bookie_that_runs_is_refused(cluster):
    async with client_of(cluster) as client:
        with pytest.raises(NotAllowed, match="is running"):
            await decommission_of(cluster, client).run(cluster.bookies[0].bookie_id, print)


async def test_it_does_not_wait_for_what_is_disabled(cluster):
    await marks_of(cluster).disable()
    async with client_of(cluster) as client:
        with pytest.raises(NotAllowed, match="disabled"):
            await decommission_of(cluster, client).run("gone:1", print)


async def test_a_bookie_that_no_ledger_has(cluster):
    left = []
    async with client_of(cluster) as client:
        assert await decommission_of(cluster, client).run("gone:1", left.append) == 0
    assert left == [0]
