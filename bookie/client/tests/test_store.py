"""Recovery and creation against a metadata store that others write to as well."""

import trio

from magnetar.bookie.client.store import MASTER_KEY, LedgerClient
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import overwrite


class Link:
    """A bookie that only remembers fences and one last entry."""

    def __init__(self, last=None):
        self.last = last
        self.fenced = []
        self.meanwhile = None
        self.highest = -1

    async def create(self, ledger_id, master_key):
        await trio.lowlevel.checkpoint()
        if ledger_id <= self.highest:
            raise AlreadyExists(str(ledger_id))

    async def fence(self, ledger_id, master_key):
        assert master_key == MASTER_KEY
        self.fenced.append(ledger_id)
        if self.meanwhile is not None:
            await self.meanwhile()
        await trio.lowlevel.checkpoint()

    async def last_entry(self, ledger_id):
        await trio.lowlevel.checkpoint()
        return self.last

    def release(self, ledger_id):
        pass


def client(link, store):
    return LedgerClient("embedded", link, store, system_machine(), lambda call: None)


async def test_an_id_that_is_taken_is_passed_over():
    store = DictMetadata()
    await store.put(ledger_metadata.path_of(0), b"somebody's", ABSENT)
    writer = await client(Link(), store).create({})
    assert writer.ledger_id == 1


async def test_an_id_that_the_bookie_has_had_is_passed_over():
    """The counter was set back: a backup was restored."""
    store, link = DictMetadata(), Link()
    link.highest = 1_500
    writer = await client(link, store).create({})
    assert writer.ledger_id == 1_501
    assert await store.get(ledger_metadata.path_of(3)) is None


async def test_recovery_fences_then_closes_at_the_last_entry():
    store, link = DictMetadata(), Link(DigestHeader(0, 7, 5, 800))
    ledgers = client(link, store)
    writer = await ledgers.create({"a": b"b"})
    reader = await ledgers.open(writer.ledger_id, recover=True)
    assert link.fenced == [writer.ledger_id]
    assert reader.last_confirmed == 7
    info = await ledgers.info(writer.ledger_id)
    assert (info.closed, info.last_entry_id, info.length) == (True, 7, 800)
    await ledgers.open(writer.ledger_id, recover=True)
    assert len(link.fenced) == 1  # a closed ledger needs no recovery


async def test_of_two_who_recover_one_closes_and_the_other_sees_it():
    store, link = DictMetadata(), Link(DigestHeader(0, 7, 5, 800))
    ledgers = client(link, store)
    writer = await ledgers.create({})
    path = ledger_metadata.path_of(writer.ledger_id)

    async def another_closes():
        taken, _ = ledger_metadata.decode((await store.get(path)).value)
        assert taken.state == ledger_metadata.IN_RECOVERY
        taken.state, taken.lastEntryId, taken.length = ledger_metadata.CLOSED, 6, 700
        await overwrite(store, path, ledger_metadata.encode(taken))

    link.meanwhile = another_closes
    reader = await ledgers.open(writer.ledger_id, recover=True)
    assert reader.last_confirmed == 6


async def test_an_open_ledger_of_a_lost_writer_shows_what_was_surely_confirmed():
    store, link = DictMetadata(), Link(DigestHeader(0, 7, 5, 800))
    writer = await client(link, store).create({})
    reader = await client(link, store).open(writer.ledger_id, recover=False)
    assert reader.last_confirmed == 5
    assert not link.fenced
