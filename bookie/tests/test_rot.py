"""Bytes that have changed on the disk: said to be damaged, never taken for what is not there."""

import msgspec
import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.recovery import inspection
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.tests.contract_ledger_store import append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600, entry_log_size_max_bytes=20_000)


def opened(directory, metadata, **changed):
    settings = msgspec.structs.replace(SETTINGS, **changed)
    return open_embedded(directory, metadata, settings, on_fatal=pytest.fail)


def rot(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


def rot_tables(index):
    """In the first block of each table, which holds all keys of so few ledgers."""
    for table in index.glob("*.sst"):
        rot(table, 10)


async def stored(directory, metadata, entries=3):
    """Two ledgers, in logs and indexes that are not in memory any more: one closed, one open."""
    async with opened(directory, metadata) as store:
        closed, left_open = [await store.create({}) for _ in range(2)]
        for writer in (closed, left_open):
            await append(writer, *[b"%d" % number * 10 for number in range(entries)])
        await closed.close()
    return closed.ledger_id, left_open.ledger_id


@pytest.fixture
def unseen(monkeypatch):
    """Rot that a start does not see: in tables this small it would."""
    monkeypatch.setattr(inspection, "_wear", lambda *_, **__: "")
    for name in ("locations.LocationIndex", "ledgers.LedgersIndex"):
        monkeypatch.setattr(f"magnetar.bookie.server.index.{name}.last_ledger", lambda self: -1)
        monkeypatch.setattr(f"magnetar.bookie.server.index.{name}.mark", lambda self: None)


async def test_a_rotten_index_of_entries_ends_no_ledger(tmp_path, unseen):
    """Its last entry cannot be found: to close it as an empty one would be to lose it."""
    metadata = DictMetadata()
    _, left_open = await stored(tmp_path, metadata)
    rot_tables(tmp_path / "ledgers/current/locations")
    async with opened(tmp_path, metadata) as store:
        with pytest.raises(Corrupted):
            await store.open(left_open, recover=True)
        assert not (await store.info(left_open)).closed


async def test_a_rotten_index_of_ledgers_makes_nothing_garbage(tmp_path, unseen):
    """A list of ledgers that ends too soon would have all others deleted."""
    metadata = DictMetadata()
    closed, _ = await stored(tmp_path, metadata)
    rot_tables(tmp_path / "ledgers/current/ledgers")
    async with opened(tmp_path, metadata) as store:
        with pytest.raises(Corrupted):
            await store.collect(compact_below=0.9)
        assert store.statistics().entry_logs_unlinked == 0
        reader = await store.open(closed, recover=False)
        assert await reader.read(0, 0, 1) == [b"0" * 10]


async def half_garbage(directory, metadata, rounds=4):
    """A kept ledger, and a deleted one with which it shares its logs."""
    async with opened(directory, metadata) as store:
        kept, deleted = [await store.create({}) for _ in range(2)]
        for _ in range(rounds):
            for writer in (kept, deleted):
                await append(writer, *[b"%d" % writer.ledger_id * 20] * 50)
            await store.checkpoint()
        await kept.close()
        await deleted.close()
        await store.delete(deleted.ledger_id)
    return kept


@pytest.mark.parametrize("finished", [True, False])
async def test_a_log_with_a_rotten_middle_is_not_given_up(tmp_path, finished, caplog):
    """What lies behind cannot be found by reading on: compaction would leave it behind."""
    metadata = DictMetadata()
    kept = await half_garbage(tmp_path / "bookie", metadata)
    logs = tmp_path / "bookie/ledgers/current"
    first = min(logs.glob("*.log"))
    rot(first, 1024)  # the length of the first record
    if not finished:
        with first.open("r+b") as file:
            file.write(log_format.header())
    async with opened(tmp_path / "bookie", metadata) as store:
        for _ in range(3):
            await store.collect(compact_below=1.0)
        assert first.exists()
        assert caplog.text.count("it is left alone") == 1
        reader = await store.open(kept.ledger_id, recover=False)
        assert len(await reader.read(1, 199, 1 << 20)) == 199
