"""A test of one bookie."""

import random

import pytest

from magnetar.bookie.client.quorum.sanity import ledgers_of_one, write_and_read
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_client
from magnetar.bookie.client.quorum.tests.bookies import QUICK
from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.testing.ledgers import MemoryLedgers


async def outcome(cluster, bookie, seen):
    machine = ClientMachine(SystemNetwork(), SystemClock(), random.Random(1))
    async with open_cluster_client(
        cluster.metadata, cluster.cluster, machine, QuorumSettings(), QUICK
    ) as client:
        ids = LedgerIdGenerator(cluster.metadata, cluster.cluster)
        store = ledgers_of_one(client, ids, machine, bookie.bookie_id)
        try:
            return await write_and_read(store, 5, seen), None
        except BrokerError as error:
            return None, error


async def test_a_bookie_that_is_well(cluster):
    seen = []
    ledger_id, error = await outcome(cluster, cluster.bookies[1], seen.append)
    assert (ledger_id is None, error, seen) == (False, None, [1] * 5)
    assert await cluster.ledgers.ids() == [], "nothing is left of it"


async def test_a_bookie_that_is_gone(cluster):
    await cluster.bookies[1].kill()
    _, error = await outcome(cluster, cluster.bookies[1], print)
    assert error is not None
    assert await cluster.ledgers.ids() == []


async def test_a_bookie_that_returns_something_else():
    class Forgetful(MemoryLedgers):
        async def open(self, ledger_id, *, recover):
            reader = await super().open(ledger_id, recover=recover)

            async def read(first, last, bytes_max):
                return [b"?"] * (last - first + 1)

            reader.read = read
            return reader

    with pytest.raises(Corrupted):
        await write_and_read(Forgetful(), 2)
