"""What a start says of a journal that is not what was written."""

import logging
import shutil

import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing.memory_disk import MemoryDisk


def opened(directory, metadata):
    return open_embedded(directory, metadata, BookieSettings(), on_fatal=print)


BEGINNING = "has lost its beginning: zeros stand there"


@pytest.mark.parametrize(
    ("hole", "size", "said"),
    [
        (0, 512, f" {BEGINNING}"),
        (0, None, f" {BEGINNING}"),
        (512, 512, ": the record at 512 makes no sense"),
    ],
)
async def test_a_hole_in_a_journal_stops_the_start(tmp_path, caplog, hole, size, said):
    """It is told from the zeros at the end by what follows, and from a torn end too."""
    metadata = DictMetadata()
    async with opened(tmp_path / "bookie", metadata) as store:
        writer = await store.create({})
        for _ in range(3):
            await append(writer, b"x" * 1000)
        for name in ("whole", "holed"):
            shutil.copytree(tmp_path / "bookie", tmp_path / name)
    journals = sorted((tmp_path / "holed" / "journal" / "current").glob("*.txn"))
    with journals[-1].open("r+b") as file:
        file.seek(hole)
        file.write(bytes(size or journals[-1].stat().st_size))
    caplog.set_level(logging.WARNING, "magnetar.bookie.server.replay")
    async with opened(tmp_path / "whole", metadata):
        assert not caplog.messages
    with pytest.raises(Corrupted, match=f"{journals[-1]}{said}"):
        async with opened(tmp_path / "holed", metadata):
            pass


async def test_entries_of_a_collected_ledger_can_be_collected_again():
    """The journal has them behind the mark, and the ledger's key before it."""
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
        await store.checkpoint()
        await append(writer, b"y")
        await store.delete(writer.ledger_id)
        await store.collect(compact_below=0)
        left = disk.left(None)
    async with open_in_memory(left, metadata) as store:
        locations = store._parts.storage.locations
        assert locations.last(writer.ledger_id) is not None
        await store.collect(compact_below=0)
        assert locations.last(writer.ledger_id) is None
