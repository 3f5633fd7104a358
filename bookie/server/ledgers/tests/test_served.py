"""The ledgers of a bookie for strangers: what a client over the network may do."""

import pytest

from magnetar.bookie.format import digests, entries
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.server.ledgers import served as served_module
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.tests.memory_machine import START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Fenced, Invalid, LedgerNotFound, StorageFull, Unauthorized
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = b"k" * 20
CRC32C = digests.digest_type(LedgerMetadata.CRC32C, b"")


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
async def store(disk, autojump_clock):
    async with open_in_memory(disk, DictMetadata()) as opened:
        yield opened


@pytest.fixture
def ledgers(store):
    return ServedLedgers(store._bookie, FixedClock(START_MS), 1 << 20)


def run(ledger_id, first, lac=-1):
    return entries.seal(ledger_id, first, lac, 0, [b"payload"])


async def added(ledgers, some, key=KEY, **more):
    outcome = Outcome()
    ledgers.add(some, key, outcome, **more)
    assert await outcome.wait() == [None]


async def fenced(ledgers, ledger_id, key=KEY):
    outcome = Outcome()
    ledgers.fence(ledger_id, key, outcome)
    return await outcome.wait()


async def test_a_key_of_zeros_is_replaced_and_no_other(ledgers):
    await added(ledgers, run(1, 0), bytes(20))
    await added(ledgers, run(1, 1))
    with pytest.raises(Unauthorized):
        ledgers.add(run(1, 2), b"x" * 20, pytest.fail)
    with pytest.raises(Unauthorized):
        ledgers.fence(1, b"x" * 20, pytest.fail)


async def test_a_fence_refuses_the_writer_in_this_process_too(store, ledgers):
    writer = await store.create({})
    outcome = Outcome()
    writer.append([b"a"], outcome)
    await outcome.wait()
    from magnetar.bookie.client.store import MASTER_KEY

    assert await fenced(ledgers, writer.ledger_id, MASTER_KEY) == [None]
    outcome = Outcome()
    writer.append([b"b"], outcome)
    assert isinstance((await outcome.wait())[0], Fenced)


async def test_the_writer_of_a_deleted_ledger_is_refused(store, ledgers):
    """BookKeeper #4462: a zombie's add would make the ledger anew, without its fence."""
    await added(ledgers, run(1, 0))
    assert await fenced(ledgers, 1) == [None]
    store._bookie.deleted(1)
    await store.collect(compact_below=0.0)
    await store.checkpoint()
    for more in ({}, {"recovery": True}):
        with pytest.raises(Fenced):
            ledgers.add(run(1, 1), KEY, pytest.fail, **more)
    with pytest.raises(LedgerNotFound):
        ledgers.known(1)


async def test_a_second_fence_needs_no_sync(store, ledgers):
    await added(ledgers, run(1, 0))
    await fenced(ledgers, 1)
    before = store.statistics().journal_bytes
    assert await fenced(ledgers, 1) == [None]
    assert store.statistics().journal_bytes == before


async def test_what_is_not_here(ledgers):
    with pytest.raises(LedgerNotFound):
        ledgers.known(5)
    with pytest.raises(Invalid):
        ledgers.fence(-5, KEY, pytest.fail)
    with pytest.raises(Invalid):
        ledgers.add(run(-1, 0), KEY, pytest.fail)


async def test_many_ledgers_do_not_fill_memory(ledgers, store, monkeypatch):
    monkeypatch.setattr(served_module, "LEDGERS_MAX", 10)
    for ledger_id in range(100):
        await added(ledgers, run(ledger_id, 0))
    assert len(store._bookie.states.in_use) <= 10
    await fenced(ledgers, 3)
    for ledger_id in range(100, 200):
        await added(ledgers, run(ledger_id, 0))
    with pytest.raises(Fenced):
        ledgers.add(run(3, 1), KEY, pytest.fail)
    with pytest.raises(Unauthorized):
        ledgers.add(run(4, 1), b"x" * 20, pytest.fail)
    assert await ledgers.lac(5) == -1


async def told(ledgers, ledger_id, lac):
    """An explicit LAC is stored."""
    outcome = Outcome()
    packet = digests.seal_lac(CRC32C, ledger_id, lac)
    ledgers.write_lac(ledger_id, KEY, packet, outcome)
    assert await outcome.wait() == [None]


@pytest.mark.parametrize("explicit", [False, True])
async def test_an_entry_that_comes_again_after_a_start_takes_the_lac_back_nowhere(
    ledgers, store, explicit
):
    for entry_id in range(4):
        await added(ledgers, run(1, entry_id, lac=entry_id - 1))
    if explicit:
        await told(ledgers, 1, 3)
    store._bookie.states.release(1)  # as a start leaves it
    await added(ledgers, run(1, 1, lac=0))
    assert await ledgers.lac(1) == (3 if explicit else 2)
    await added(ledgers, run(1, 5, lac=4))
    assert await ledgers.lac(1) == 4


async def test_an_explicit_lac_is_known_after_a_start_without_an_entry(ledgers, store):
    await told(ledgers, 1, 7)
    store._bookie.states.release(1)
    assert await ledgers.lac(1) == 7


async def test_a_poll_hears_of_a_lac_while_that_before_the_start_is_not_known(ledgers, store):
    await added(ledgers, run(1, 0))
    heard = []
    ledgers.waiters.wait(1, 0, lambda: heard.append(True))
    store._bookie.states.release(1)  # of many ledgers in use it was the oldest
    await added(ledgers, run(1, 2, lac=1))
    assert heard == [True]


async def test_a_disk_that_is_too_full_has_room_for_a_recovery(ledgers, store, disk):
    await added(ledgers, run(1, 0))
    disk.usage_now = DiskUsage(0.99, 2 << 20)
    store._parts.disk.check()
    with pytest.raises(StorageFull):
        ledgers.add(run(1, 1), KEY, pytest.fail)
    await added(ledgers, run(1, 1), recovery=True, urgent=True)
    disk.usage_now = DiskUsage(0.999, 1 << 19)
    store._parts.disk.check()
    with pytest.raises(StorageFull):
        ledgers.add(run(1, 2), KEY, pytest.fail, recovery=True, urgent=True)
    assert await fenced(ledgers, 1) == [None]
