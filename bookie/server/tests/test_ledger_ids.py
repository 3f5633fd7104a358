"""Ids are made once, whatever becomes of the metadata's counter and of one copy of the file."""

from pathlib import Path

import pytest
import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server import ledger_ids
from magnetar.bookie.server.ledger_ids import FILE, IDS_RESERVED, places
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.bookie.tests.real_disk import directories_at
from magnetar.core.kernel.errors import AlreadyExists, Fenced, StorageFailed
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append


@pytest.fixture
def directories(tmp_path):
    return directories_at(tmp_path)


def LedgerIds(directories):  # noqa: N802 - as if it were the class
    return ledger_ids.LedgerIds(directories, SystemThreads())


def copies(directories):
    return [Path(place.path) / FILE for place in places(directories)]


def test_every_flip_and_cut_is_noticed():
    data = ledger_ids.encode(4711)
    assert ledger_ids.decode(data) == 4711
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            with pytest.raises(ValueError):  # noqa: PT011
                ledger_ids.decode(bytes(flipped))
        with pytest.raises(ValueError):  # noqa: PT011
            ledger_ids.decode(data[:at])


async def test_an_id_is_taken_once_and_written_before_it_is_given(directories):
    ids = LedgerIds(directories)
    await ids.take(0)
    assert ledger_ids.read(directories) == IDS_RESERVED
    with pytest.raises(AlreadyExists):
        await ids.take(0)
    await ids.take(IDS_RESERVED + 1)
    assert ledger_ids.read(directories) == 2 * IDS_RESERVED + 1
    killed = LedgerIds(directories)
    with pytest.raises(AlreadyExists):
        await killed.take(2 * IDS_RESERVED + 1)
    await ids.close()
    assert LedgerIds(directories).highest == IDS_RESERVED + 1


async def test_many_at_once_get_theirs_or_are_refused(directories):
    ids = LedgerIds(directories)
    taken = []

    async def take(ledger_id):
        try:
            await ids.take(ledger_id)
        except AlreadyExists:
            return
        taken.append(ledger_id)

    async with trio.open_nursery() as nursery:
        for ledger_id in range(3 * IDS_RESERVED):
            nursery.start_soon(take, ledger_id)
    assert len(taken) == len(set(taken)) > 0
    assert ledger_ids.read(directories) >= max(taken)


async def test_one_copy_is_enough(directories, caplog):
    await LedgerIds(directories).take(5)
    one, other = copies(directories)
    one.write_bytes(b"12\n")
    assert LedgerIds(directories).highest == 5 + IDS_RESERVED
    assert "damaged" in caplog.text
    one.write_bytes(ledger_ids.encode(3))  # an older one
    assert LedgerIds(directories).highest == 5 + IDS_RESERVED
    other.unlink()
    assert LedgerIds(directories).highest == 3


async def test_a_disk_that_cannot_note_it_makes_no_ledger(directories, monkeypatch):
    def failing(*_):
        raise OSError(5, "broken")

    monkeypatch.setattr(ledger_ids, "write_whole", failing)
    with pytest.raises(StorageFailed, match="new ledger"):
        await LedgerIds(directories).take(5)


@pytest.mark.parametrize("files", [True, False])
async def test_a_counter_that_was_set_back_gives_no_old_ledger(tmp_path, files):
    """With both files gone, what is stored still speaks."""
    metadata = DictMetadata()
    settings = BookieSettings()
    async with open_embedded(tmp_path, metadata, settings, on_fatal=pytest.fail) as store:
        writers = [await store.create({}) for _ in range(3)]
        for writer in writers:
            await append(writer, b"old")
    if not files:
        for path in copies(directories_at(tmp_path)):
            path.unlink()
    metadata.counters.clear()
    for path in [path for path in metadata.values if "/L0" in path]:
        del metadata.values[path]
    async with open_embedded(tmp_path, metadata, settings, on_fatal=pytest.fail) as store:
        fresh = await store.create({})
        assert fresh.ledger_id == writers[-1].ledger_id + 1
        outcome = Outcome()
        writers[0]._link, writers[0]._call_soon = store._client._link, store._client._call_soon
        fresh._ledger_id = 77
        fresh.append([b"of a ledger that was never made"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)
