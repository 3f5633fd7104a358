"""What strangers may do with the ledgers of a bookie that has a client of its own: read."""

import pytest

from magnetar.bookie.format import entries
from magnetar.bookie.server.ledgers.lent import LentLedgers
from magnetar.bookie.tests.memory_machine import START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import LedgerNotFound, Unauthorized
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = bytes(20)


@pytest.fixture
async def store(autojump_clock):
    async with open_in_memory(MemoryDisk(), DictMetadata()) as opened:
        yield opened


@pytest.fixture
def lent(store):
    return LentLedgers(store._bookie, FixedClock(START_MS), 1 << 20)


async def test_entries_are_read_and_the_lac_is_what_the_last_one_says(store, lent):
    writer = await store.create({})
    for number in range(3):
        await append(writer, b"%d" % number)
    entry = lent.entry_at_once(writer.ledger_id, 2)
    assert entry is not None
    assert entry.endswith(b"2")
    assert await lent.lac(writer.ledger_id) == 1
    await append(writer, b"3")
    assert await lent.lac(writer.ledger_id) == 2, "it goes on with the writer"
    assert lent.known(writer.ledger_id).lac == 2, "so that a poll waits, and does not ask again"


async def test_nothing_is_written_or_fenced(store, lent):
    writer = await store.create({})
    await append(writer, b"mine")
    run = entries.seal(writer.ledger_id, 1, 0, 0, [b"theirs"])
    assert not lent.writable
    with pytest.raises(Unauthorized, match="it may be read only"):
        lent.add(run, KEY, pytest.fail, recovery=True)
    with pytest.raises(Unauthorized):
        lent.fence(writer.ledger_id, KEY, pytest.fail)
    with pytest.raises(Unauthorized):
        lent.write_lac(writer.ledger_id, KEY, bytes(20), pytest.fail)
    with pytest.raises(Unauthorized):
        lent.force(pytest.fail)
    await append(writer, b"mine, still")
    assert lent.entry_at_once(writer.ledger_id, 1).endswith(b"still")


async def test_what_is_not_here_is_not_here(lent):
    with pytest.raises(LedgerNotFound):
        await lent.lac(99)
