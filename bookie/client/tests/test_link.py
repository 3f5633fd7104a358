"""What every BookieLink must do, tried on the bookie of this process."""

import pytest
import trio

from magnetar.bookie.format import entries
from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import AlreadyExists, EntryNotFound, Fenced
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = b"k" * 20


@pytest.fixture
async def link(autojump_clock):
    async with open_in_memory(MemoryDisk(), DictMetadata()) as store:
        yield store._client._link


def run(first, *payloads, ledger_id=1, confirmed=-1, length=0):
    return entries.seal(ledger_id, first, confirmed, length, payloads)


async def add(link, some):
    outcome = Outcome()
    link.add(some, KEY, outcome)
    assert outcome.results == [], "not from within"
    return await outcome.wait()


async def test_what_is_added_is_read(link):
    await link.create(1, KEY)
    assert await add(link, run(0, b"a", b"b")) == [None]
    assert await add(link, run(2, b"c")) == [None]
    assert await link.read(1, 0, 2, 1 << 20) == [b"a", b"b", b"c"]
    assert await link.read(1, 1, 1, 1 << 20) == [b"b"]
    assert await link.read(1, 0, 9, 1) == [b"a"], "one at least, and no more than fits"
    with pytest.raises(EntryNotFound):
        await link.read(1, 3, 3, 1 << 20)
    assert link.read_at_once(1, 0, 2, 1 << 20) == [], "nothing was read ahead"


async def test_a_ledger_is_created_once_and_none_below_it(link):
    await link.create(5, KEY)
    for ledger_id in (5, 3):
        with pytest.raises(AlreadyExists):
            await link.create(ledger_id, KEY)
    await link.create(6, KEY)


async def test_a_fence_stops_all_that_comes_and_nothing_that_came(link):
    await link.create(1, KEY)
    outcome = Outcome()
    link.add(run(0, b"before"), KEY, outcome)
    await link.fence(1, KEY)
    assert outcome.results == [None], "it was in the journal first"
    with pytest.raises(Fenced):
        link.add(run(1, b"after"), KEY, pytest.fail)
    assert await link.read(1, 0, 0, 100) == [b"before"]
    await link.fence(1, KEY)


async def test_a_ledger_that_was_not_created_takes_nothing(link):
    with pytest.raises(Fenced):
        link.add(run(0, b"x", ledger_id=7), KEY, pytest.fail)


async def test_the_last_entry_says_what_the_writer_knew(link):
    await link.create(1, KEY)
    assert await link.last_entry(1) is None
    await add(link, run(0, b"abc", b"de"))
    await add(link, run(2, b"f", confirmed=1, length=5))
    assert await link.last_entry(1) == entries.DigestHeader(1, 2, 1, 6)


async def test_a_released_ledger_is_found_again(link):
    await link.create(1, KEY)
    await add(link, run(0, b"a"))
    link.release(1)
    await add(link, run(1, b"b"))
    link.release(1)
    await link.fence(1, KEY)
    link.release(1)
    with pytest.raises(Fenced):
        link.add(run(2, b"c"), KEY, pytest.fail)


async def test_damage_is_nowhere_where_all_is_whole(link):
    """RecordedAccess about an entry that is not there, it is the damage."""
    await link.create(1, KEY)
    await add(link, run(0, b"a", b"b"))
    await add(link, run(3, b"d"))
    assert await link.damage(1, 2, 3) == (2, 2)
    await trio.lowlevel.checkpoint()
