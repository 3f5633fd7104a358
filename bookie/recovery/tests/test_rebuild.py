"""Indexes that are gone, old or rotten: found at the start, made again, and what is lost told."""

import os
import shutil

import pytest
import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format import entries
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.machine.disk import SystemDirectory
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.bookie.tests.test_crash_points import snapshot
from magnetar.bookie.tests.test_rot import rot
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, StorageFailed
from magnetar.core.ports.tests.contract_ledger_store import append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600, entry_log_size_max_bytes=20_000)
INDEXES = ("locations", "ledgers")


def opened(directory, metadata):
    return open_embedded(directory, metadata, SETTINGS, on_fatal=pytest.fail)


def payloads(ledger_id, count=300):
    return [b"%d-%d " % (ledger_id, i) * 3 for i in range(count)]


async def stored(directory, metadata):
    """A closed ledger, an open one and a deleted one, in several logs; the journal has more."""
    async with opened(directory, metadata) as store:
        writers = [await store.create({}) for _ in range(3)]
        for start in (0, 100, 200):
            for writer in writers:
                await append(writer, *payloads(writer.ledger_id)[start : start + 100])
            await store.checkpoint()
            if not start:
                snapshot(directory, directory.parent / "older")
        closed, still_open, deleted = writers
        await closed.close()
        await deleted.close()
        await store.delete(deleted.ledger_id)
        await append(still_open, b"in the journal only")
        shutil.copytree(directory, directory.parent / "killed")
    return closed.ledger_id, still_open.ledger_id


@pytest.fixture
async def used(tmp_path):
    metadata = DictMetadata()
    closed, still_open = await stored(tmp_path / "source", metadata)
    directory = tmp_path / "killed"
    return directory, metadata, closed, still_open


async def check(directory, metadata, closed, still_open):
    for _ in range(2):
        async with opened(directory, metadata) as store:
            reader = await store.open(closed, recover=True)
            assert await reader.read(0, 299, 1 << 30) == payloads(closed)
            reader = await store.open(still_open, recover=True)
            expected = [*payloads(still_open), b"in the journal only"]
            assert await reader.read(0, 300, 1 << 30) == expected
            assert store._bookie.states.touch(still_open, b"").fenced
            await store.collect(compact_below=0.5)


def damages(directory, older, another):
    current = directory / "ledgers/current"

    def delete(name):
        shutil.rmtree(current / name)

    def empty(name):
        delete(name)
        (current / name).mkdir()

    def lose_current(name):
        (current / name / "CURRENT").unlink()

    def spoil_current(name):
        (current / name / "CURRENT").write_bytes(b"noise")

    def lose_tables(name):
        for table in (current / name).glob("*.sst"):
            table.unlink()

    def cut_tables(name):
        for table in (current / name).glob("*.sst"):
            table.write_bytes(table.read_bytes()[:-7])

    def lose_manifest(name):
        for path in (current / name).glob("MANIFEST*"):
            path.unlink()

    def put_back(name):
        delete(name)
        shutil.copytree(older / name, current / name)

    def put_another(name):
        delete(name)
        shutil.copytree(another / name, current / name)

    return [
        *(delete, empty, lose_current, spoil_current, lose_tables, cut_tables, lose_manifest),
        *(put_back, put_another),
    ]


async def retired(directory, metadata):
    """The journal has nothing more of it."""
    async with opened(directory, metadata) as store:
        await store._parts.checkpointer.retire()


@pytest.mark.parametrize("names", [("locations",), ("ledgers",), INDEXES])
@pytest.mark.parametrize("damage", range(9))
async def test_a_damaged_index_is_rebuilt_at_the_start(tmp_path, used, names, damage, caplog):
    directory, metadata, closed, still_open = used
    async with opened(tmp_path / "another", DictMetadata()) as store:
        await append(await store.create({}), b"of another bookie")
    copies = [tmp_path / name / "ledgers/current" for name in ("older", "another")]
    for name in names:
        damages(directory, *copies)[damage](name)
    await check(directory, metadata, closed, still_open)
    assert caplog.text.count("it is rebuilt") == len(names)
    assert "the index of entries is rebuilt: 600 entries" in caplog.text
    assert "lost:" not in caplog.text


@pytest.mark.parametrize("step", ["put", "sync", "put_lost"])
async def test_a_rebuilding_that_is_cut_short_is_begun_again(used, step, monkeypatch):
    directory, metadata, closed, still_open = used
    shutil.rmtree(directory / "ledgers/current/locations")

    class Killed(Exception):
        pass

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"magnetar.bookie.server.index.locations.LocationIndex.{step}", killed)
        if step == "put_lost":
            patch.setattr("magnetar.bookie.recovery.rebuild.Rebuild.note_lost", killed)
        with pytest.raises(Killed):
            async with opened(directory, metadata):
                raise AssertionError
    await check(directory, metadata, closed, still_open)


async def test_a_worn_index_that_is_thrown_away_in_part_is_still_worn(used, monkeypatch, caplog):
    """The note says what nothing in the index does, and must not go before the rest."""
    directory, metadata, closed, still_open = used
    index = directory / "ledgers/current/locations"
    wear.note(directory_at(index), "the index is to be made to agree")

    class Killed(Exception):
        pass

    def killed(parent, name):
        os.unlink(f"{parent.path}/{name}/{wear.FILE}")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SystemDirectory, "remove", killed)
        with pytest.raises(Killed):
            async with opened(directory, metadata):
                raise AssertionError
    await check(directory, metadata, closed, still_open)
    assert "the index of entries is rebuilt" in caplog.text
    assert [path.name for path in directory.rglob("*.worn")] == []


async def test_of_a_ledger_that_was_lost_whole_nothing_stays_when_it_is_deleted(used):
    """It has no entry anywhere, and its row was in the index that is gone."""
    directory, metadata, closed, _ = used
    await retired(directory, metadata)
    current = directory / "ledgers/current"
    for log in current.glob("*.log"):
        log.unlink()
    for name in INDEXES:
        shutil.rmtree(current / name)
    async with opened(directory, metadata) as store:
        locations = store._parts.checkpointer.storage.locations
        assert len(list(locations.locations(closed))) == 300
        await store.delete(closed)
        await store.collect(compact_below=0)
        assert list(locations.locations(closed)) == []


async def test_a_rebuilt_index_is_whole_however_soon_the_bookie_stops(used, caplog):
    """As `magnetar bookie rebuild-index` does; the next start need not do it again."""
    directory, metadata, closed, still_open = used
    shutil.rmtree(directory / "ledgers/current/locations")
    async with opened(directory, metadata):
        pass
    assert caplog.text.count("it is rebuilt") == 1
    await check(directory, metadata, closed, still_open)
    assert caplog.text.count("it is rebuilt") == 1


async def test_an_index_without_a_mark_is_one_of_before_there_were_marks(used, monkeypatch, caplog):
    """Then, and only then: once a version that puts marks has run, there must be one."""
    directory, metadata, closed, still_open = used
    for path in directory.rglob("highestLedger"):
        path.unlink()
    for name in ("LocationIndex", "LedgersIndex"):
        module = "locations" if name == "LocationIndex" else "ledgers"
        monkeypatch.setattr(f"magnetar.bookie.server.index.{module}.{name}.mark", lambda self: None)
    async with opened(directory, metadata):
        pass
    assert "rebuilt" not in caplog.text
    await check(directory, metadata, closed, still_open)
    assert "has lost what was in it" in caplog.text


async def test_what_is_nowhere_is_said_to_be_lost(used, caplog):
    """Readers hear that it is damaged, never that there is no such entry."""
    directory, metadata, closed, _ = used
    await retired(directory, metadata)
    current = directory / "ledgers/current"
    first = min(current.glob("*.log"))
    first.unlink()
    shutil.rmtree(current / "locations")
    async with opened(directory, metadata) as store:
        reader = await store.open(closed, recover=True)
        with pytest.raises(Corrupted, match="lost"):
            await reader.read(0, 0, 1)
        assert (await reader.read(299, 299, 1 << 20)) == payloads(closed)[299:]
        with pytest.raises(EntryNotFound):
            await reader.read(300, 300, 1)
    assert f"ledger {closed}: " in caplog.text
    assert "entries are lost" in caplog.text


async def test_a_damaged_page_costs_what_is_in_it(used, caplog):
    directory, metadata, closed, still_open = used
    await retired(directory, metadata)
    current = directory / "ledgers/current"
    first = min(current.glob("*.log"))
    rot(first, log_format.HEADER_BYTES + 500)
    shutil.rmtree(current / "locations")
    async with opened(directory, metadata) as store:
        bad = 0
        for ledger_id in (closed, still_open):
            reader = await store.open(ledger_id, recover=True)
            for entry_id, payload in enumerate(payloads(ledger_id)):
                try:
                    assert await reader.read(entry_id, entry_id, 1 << 20) == [payload]
                except Corrupted:
                    bad += 1
    assert bad == 1
    assert "is damaged" in caplog.text


async def test_a_lost_end_of_a_closed_ledger_is_lost_and_not_an_end(used):
    directory, metadata, closed, _ = used
    current = directory / "ledgers/current"
    for log in sorted(current.glob("*.log"))[1:]:
        log.unlink()
    for path in (directory / "journal/current").glob("*.txn"):
        path.write_bytes(path.read_bytes()[:512] + bytes(path.stat().st_size - 512))
    shutil.rmtree(current / "locations")
    async with opened(directory, metadata) as store:
        reader = await store.open(closed, recover=True)
        with pytest.raises(Corrupted, match="lost"):
            await reader.read(299, 299, 1)


async def rotten(directory, metadata):
    """A block that no start looks at: the first of many."""
    async with opened(directory, metadata) as store:
        writer = await store.create({})
        await append(writer, *payloads(writer.ledger_id, 5000))
        await writer.close()
    tables = (directory / "ledgers/current/locations").glob("*.sst")
    rot(max(tables, key=lambda path: path.stat().st_size), 10)
    return writer.ledger_id


async def mended(directory, metadata, ledger_id):
    async with opened(directory, metadata) as store:
        reader = await store.open(ledger_id, recover=True)
        assert await reader.read(0, 4999, 1 << 30) == payloads(ledger_id, 5000)


async def test_rot_that_is_read_is_told_once_and_mended_at_the_next_start(
    tmp_path, monkeypatch, caplog
):
    metadata = DictMetadata()
    ledger_id = await rotten(tmp_path, metadata)

    async def nothing(_):
        return

    with monkeypatch.context() as patch:
        patch.setattr(
            "magnetar.bookie.server.housekeeping.BookieHousekeeping._read_indexes", nothing
        )
        async with opened(tmp_path, metadata) as store:
            reader = await store.open(ledger_id, recover=True)
            for _ in range(3):
                with pytest.raises(StorageFailed, match="a restart rebuilds it"):
                    await reader.read(0, 0, 1)
    assert caplog.text.count("the next start rebuilds it") == 1
    await mended(tmp_path, metadata, ledger_id)
    assert "is rebuilt: 5000 entries" in caplog.text


async def test_one_index_is_gone_and_the_other_one_has_rotted(tmp_path):
    metadata, directory, again = DictMetadata(), tmp_path / "data", tmp_path / "again"
    ledger_id = await rotten(directory, metadata)
    shutil.rmtree(directory / "ledgers/current/ledgers")
    with pytest.raises(Corrupted, match="start once more: then it is rebuilt as well"):
        async with opened(directory, metadata):
            pass
    shutil.copytree(directory, again)  # in this process RocksDB does not let go of it
    await mended(again, metadata, ledger_id)


async def test_rot_that_nobody_reads_is_found_in_the_background(tmp_path, caplog):
    metadata = DictMetadata()
    ledger_id = await rotten(tmp_path, metadata)
    async with opened(tmp_path, metadata):
        for _ in range(1000):
            if "the next start rebuilds it" in caplog.text:
                break
            await trio.sleep(0.01)
    await mended(tmp_path, metadata, ledger_id)
    assert "is rebuilt: 5000 entries" in caplog.text


@pytest.mark.parametrize("at", range(16))
async def test_a_flipped_bit_in_last_mark_loses_nothing_or_is_refused(used, at):
    """It has no checksum: the marks in the indexes tell."""
    directory, metadata, closed, still_open = used
    rot(directory / "ledgers/current/lastMark", at)
    try:
        async with opened(directory, metadata):
            pass
    except Corrupted:
        return
    await check(directory, metadata, closed, still_open)


@pytest.mark.parametrize("rotten", [0, entries.RECORD_OVERHEAD_BYTES])
async def test_a_message_with_a_record_in_it_never_takes_an_entrys_place(tmp_path, rotten):
    """Whether its own length has rotted, or its first byte: what it brings is not believed."""
    metadata, directory = DictMetadata(), tmp_path / "data"
    async with opened(directory, metadata) as store:
        first, second = [await store.create({}) for _ in range(2)]
        forged = entries.seal(first.ledger_id, 0, -1, 0, [b"forged"]).blob
        await append(first, b"the true entry")
        await append(second, b"pad" * 10 + forged + b"pad" * 10)
        await first.close()
        await second.close()
    async with opened(directory, metadata) as store:
        await store._parts.checkpointer.retire()  # or the journal would say where it is
    shutil.copytree(directory, tmp_path / "killed")
    logs = (tmp_path / "killed/ledgers").rglob("*.log")
    (log,) = [each for each in logs if forged in each.read_bytes()]
    data = bytearray(log.read_bytes())
    record = data.index(forged) - 30 - entries.RECORD_OVERHEAD_BYTES
    data[record + 1 if not rotten else record + rotten] ^= 1
    log.write_bytes(data)
    for path in (tmp_path / "killed").rglob("locations"):
        shutil.rmtree(path)
    async with opened(tmp_path / "killed", metadata) as store:
        reader = await store.open(first.ledger_id, recover=True)
        assert await reader.read(0, 0, 1 << 20) == [b"the true entry"]
