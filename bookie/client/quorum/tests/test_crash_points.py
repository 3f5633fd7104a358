"""A client that dies before or after any of its requests to the metadata: another one goes on."""

from itertools import count

import pytest
import trio

from magnetar.bookie.client.quorum.tests.bookies import local_cluster
from magnetar.bookie.client.quorum.tests.mortal import Mortal
from magnetar.core.ports.tests.contract_ledger_store import append

BOTH = pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])


async def read_by_another(store, ledger_id):
    """Recover a ledger, and read it."""
    reader = await store.open(ledger_id, recover=True)
    assert (await store.info(ledger_id)).closed
    found, last = [], reader.last_confirmed
    while len(found) <= last:  # a read ends with its segment
        found += await reader.read(len(found), last, 100)
    return found


async def write_and_close(cluster, store, acked):
    """Three entries, between which the ledger loses a bookie."""
    writer = await store.create({})
    await append(writer, b"a")
    acked.append(b"a")
    (segment,) = (await cluster.ledgers.read(writer.ledger_id)).segment
    lost = segment.ensembleMember[0]
    with trio.CancelScope(shield=True):  # whenever the writer dies, it is lost whole
        await cluster.bookie(lost).kill()
        await cluster.unregister(lost)
        await cluster.start()
    for payload in (b"b", b"c"):
        await append(writer, payload)
        acked.append(payload)
    await writer.close()


@BOTH
async def test_a_writer_that_changes_its_ensemble_and_closes(tmp_path, carried_out):
    """What was acknowledged to it is what another one finds, or more."""
    async with local_cluster(tmp_path, 4) as cluster, cluster.client() as other:
        changed = 0
        for last in count(1):
            mortal = Mortal(cluster.metadata, last, carried_out=carried_out)
            known, acked = set(await cluster.ledgers.ids()), []
            with mortal.scope:
                async with cluster.client(metadata=mortal) as store:
                    await write_and_close(cluster, store, acked)
            for ledger_id in set(await cluster.ledgers.ids()) - known:
                found = await read_by_another(other, ledger_id)
                assert found[: len(acked)] == acked, f"after {last} requests"
                assert found == [b"a", b"b", b"c"][: len(found)]
                changed += len((await cluster.ledgers.read(ledger_id)).segment) > 1
            if not mortal.scope.cancelled_caught:  # it had no more requests
                break
        assert changed > 2


@BOTH
async def test_a_recovery(tmp_path, carried_out):
    async with local_cluster(tmp_path, 3) as cluster, cluster.client() as other:
        for last in count(1):
            writer = await other.create({})
            await append(writer, b"a", b"b")
            mortal = Mortal(cluster.metadata, last, carried_out=carried_out)
            with mortal.scope:
                async with cluster.client(metadata=mortal) as store:
                    await store.open(writer.ledger_id, recover=True)
            assert await read_by_another(other, writer.ledger_id) == [b"a", b"b"]
            if not mortal.scope.cancelled_caught:
                break
        assert last > 4
