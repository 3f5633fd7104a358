"""Opening a bookie's storage: what is rebuilt, what is noted, and what a failure leaves."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.recovery import ledger_storage
from magnetar.bookie.recovery.ledger_storage import open_storage
from magnetar.bookie.server.directories import INDEXES, LOCATIONS, Directories, make_directories
from magnetar.bookie.server.disk_usage import disk_watch
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.tests.memory_machine import QUIET, START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_database import MemoryDatabases
from magnetar.core.testing.memory_disk import MemoryDisk
from magnetar.core.testing.stepped_threads import open_stepped_threads

ENTRIES = [b"one", b"two", b"three"]


class Bookie:
    """Its disk and metadata, between two starts."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.metadata = DictMetadata()
        self.ledger_id = -1

    async def write(self) -> None:
        """A ledger whose entries are in the entry log, and one whose entry is in the journal."""
        async with open_in_memory(self.disk, self.metadata) as store:
            writer = await store.create({})
            self.ledger_id = writer.ledger_id
            await append(writer, *ENTRIES)
            await store.checkpoint()

    @property
    def directories(self) -> Directories:
        return make_directories(self.disk.directory("/bookie"))

    @asynccontextmanager
    async def storage(self) -> AsyncIterator[LedgerStorage]:
        chance = random.Random(2)
        async with open_stepped_threads(chance.randrange) as threads:
            machine = Machine(
                self.disk, MemoryDatabases, FixedClock(START_MS), threads, chance.getrandbits
            )
            disk = disk_watch(self.disk, self.directories.logs, QUIET)
            storage, _ = await open_storage(
                machine, self.directories, ServerCatalog(self.metadata), QUIET, disk
            )
            try:
                yield storage
            finally:
                storage.close()


@pytest.fixture
async def bookie() -> Bookie:
    found = Bookie()
    await found.write()
    return found


def entry_ids(storage: LedgerStorage, ledger_id: int) -> list[int]:
    return [entry_id for entry_id, _ in storage.locations.locations(ledger_id)]


def refused(sentence: str) -> pytest.RaisesGroup[Corrupted]:
    """The nursery of the threads wraps what is raised in it."""
    return pytest.RaisesGroup(pytest.RaisesExc(Corrupted, match=sentence), flatten_subgroups=True)


async def test_sound_indexes_are_opened_as_they_are(
    bookie: Bookie, caplog: pytest.LogCaptureFixture
) -> None:
    async with bookie.storage() as storage:
        assert entry_ids(storage, bookie.ledger_id) == [0, 1, 2]
    assert "rebuilt" not in caplog.text


@pytest.mark.parametrize("worn", [INDEXES[:1], INDEXES[1:], INDEXES])
async def test_a_worn_index_is_rebuilt(
    bookie: Bookie, worn: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    for name in worn:
        wear.note(bookie.directories.ledgers.directory(name), f"{name} is damaged")
    async with bookie.storage() as storage:
        assert entry_ids(storage, bookie.ledger_id) == [0, 1, 2]
        assert storage.ledgers.find(bookie.ledger_id) is not None
    assert caplog.text.count("it is rebuilt") == len(worn)


async def test_ids_are_noted_once_the_indexes_are_open(bookie: Bookie) -> None:
    async with bookie.storage() as storage:
        assert storage.ids.known
        assert storage.ids.highest >= bookie.ledger_id


async def test_rot_that_shows_while_it_opens_is_rebuilt_by_the_next_start(
    bookie: Bookie, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rotten(*_: object) -> int:
        wear.note(bookie.directories.ledgers.directory(LOCATIONS), "a table is damaged")
        raise Corrupted("a table is damaged")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_storage, "_fill", rotten)
        with refused("start once more"):
            async with bookie.storage():
                pytest.fail("the storage is damaged")
    async with bookie.storage() as storage:
        assert entry_ids(storage, bookie.ledger_id) == [0, 1, 2]


async def test_other_damage_is_not_mistaken_for_wear(
    bookie: Bookie, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> int:
        raise Corrupted("an entry log is damaged")

    monkeypatch.setattr(ledger_storage, "_fill", damaged)
    with refused("^an entry log is damaged$"):
        async with bookie.storage():
            pytest.fail("the storage is damaged")
