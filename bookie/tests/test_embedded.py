"""The embedded store against the contract, and what is its own: restarts, limits, refusals."""

import os

import msgspec
import pytest
import trio
import trio.testing

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format import entries
from magnetar.bookie.format.ledger_metadata import INSTANCE_ID, LAYOUT, LAYOUT_VALUE
from magnetar.bookie.machine.disk import SystemDirectory
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import (
    Corrupted,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    StorageFailed,
)
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT, Versioned
from magnetar.core.ports.tests.contract_ledger_store import CHECKS, Outcome, append

SETTINGS = BookieSettings()
NO_SYNC = BookieSettings(sync=False)


def opened(directory, metadata, settings=SETTINGS, on_fatal=pytest.fail):
    return open_embedded(directory / "bookie", metadata, settings, on_fatal=on_fatal)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("settings", [SETTINGS, NO_SYNC], ids=["sync", "no_sync"])
async def test_contract(tmp_path, check, settings):
    async with opened(tmp_path, DictMetadata(), settings) as store:
        await check(store)


async def test_an_index_that_cannot_close_is_told_and_stops_nothing(tmp_path, monkeypatch, caplog):
    def full(index):
        raise Exception("IO error: No space left on device")

    async with opened(tmp_path, DictMetadata()):
        monkeypatch.setattr(LedgersIndex, "close", full)
    (outcome,) = caplog.messages
    assert "did not close cleanly: IO error: No space left" in outcome


async def test_where_direct_writes_do_not_work(tmp_path, monkeypatch):
    monkeypatch.setattr(SystemDirectory, "direct", False)
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        for _ in range(5):
            await append(writer, *[b"x" * 1000] * 100)
        assert not store.statistics().journal_direct
    async with opened(tmp_path, metadata) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert await reader.read(0, 499, 1 << 20) == [b"x" * 1000] * 500


async def test_entries_are_the_same_wherever_they_are(tmp_path):
    metadata = DictMetadata()
    payloads = [b"%d" % i * (i % 9) for i in range(3000)]
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        other = await store.create({})
        for i in range(0, 3000, 100):
            await append(writer, *payloads[i : i + 100])
            await append(other, b"between")
            if i % 1000 == 0:
                await store.checkpoint()
        assert await writer.read(0, 2999, 1 << 20) == payloads
        await store.checkpoint()
        assert await writer.read(0, 2999, 1 << 20) == payloads
        assert await writer.read(1234, 1234, 1) == payloads[1234:1235]
        assert store.statistics().reads_from_disk > 0
        await writer.close()
    async with opened(tmp_path, metadata) as store:
        reader = await store.open(writer.ledger_id, recover=False)
        assert await reader.read(0, 2999, 1 << 20) == payloads


async def test_reading_in_order_asks_the_disk_rarely(tmp_path):
    async with opened(tmp_path, DictMetadata()) as store:
        writer = await store.create({})
        await append(writer, *[b"x" * 100] * 5000)
        await store.checkpoint()
        first = 0
        while first < 5000:
            first += len(await writer.read(first, 4999, 10_000))
        assert store.statistics().reads_from_disk <= 4


@pytest.mark.parametrize("room", [300_000, 310_000, 650_000])
async def test_large_entries_are_read_some_at_once_and_looked_at_once(tmp_path, monkeypatch, room):
    """However many fit into an answer: of those that do not, no digest is computed."""
    looked_at = []
    checked, is_whole = entries.Run.checked_payloads, entries.is_whole

    def counted(run, first, last, bytes_max):
        found = checked(run, first, last, bytes_max)
        looked_at.extend(range(first, first + len(found)))
        return found

    def counted_alone(head, payload):
        looked_at.append(int.from_bytes(head[12:20], "big"))
        return is_whole(head, payload)

    monkeypatch.setattr(entries.Run, "checked_payloads", counted)
    monkeypatch.setattr(entries, "is_whole", counted_alone)
    payloads = [bytes([i]) * (300_000 + i) for i in range(20)]
    async with opened(tmp_path, DictMetadata()) as store:
        writer = await store.create({})
        await append(writer, *payloads)
        await store.checkpoint()
        found, read_ahead = [], 0
        assert writer.read_at_once(0, 19, room) == [], "nobody has read it"
        while len(found) < 20:
            part = await writer.read(len(found), 19, room)
            assert len(part) == 1 or sum(map(len, part)) <= room
            found += part
            ahead = writer.read_at_once(len(found), 19, room)
            assert ahead == payloads[len(found) :][: len(ahead)]
            assert len(ahead) < 2 or sum(map(len, ahead)) <= room
            read_ahead += len(ahead)
        assert found == payloads
        assert looked_at == list(range(20))
        assert read_ahead
        assert writer.read_at_once(20, 30, room) == []
        assert store.statistics().reads_from_disk <= 7


async def test_who_has_room_for_many_large_entries_gets_them_in_few_reads(tmp_path):
    payloads = [bytes([i]) * 75_000 for i in range(40)]
    async with opened(tmp_path, DictMetadata()) as store:
        writer = await store.create({})
        await append(writer, *payloads)
        await store.checkpoint()
        assert await writer.read(0, 39, 1 << 30) == payloads
        assert store.statistics().reads_from_disk == 2, "the first alone, then all that follow"


async def test_a_fence_outlives_a_restart_even_of_a_ledger_never_written(tmp_path):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await store._client._link.fence(writer.ledger_id, b"k" * 20)
    async with opened(tmp_path, metadata) as store:
        outcome = Outcome()
        writer._link = store._client._link
        writer._call_soon = store._client._call_soon
        writer.append([b"zombie"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)


async def test_a_second_process_is_refused(tmp_path):
    async with opened(tmp_path, DictMetadata()):
        with pytest.raises(StorageFailed, match="in use by another process"):
            async with opened(tmp_path, DictMetadata()):
                pass


async def test_foreign_newer_and_emptied_directories_are_refused(tmp_path):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata):
        pass
    with pytest.raises(StorageFailed, match="its metadata is lost"):
        async with opened(tmp_path, DictMetadata()):
            pass
    another = DictMetadata()
    await another.put(INSTANCE_ID, b"of another cluster", ABSENT)
    with pytest.raises(StorageFailed, match="another bookie"):
        async with opened(tmp_path, another):
            pass
    version = tmp_path / "bookie" / "ledgers" / "current" / "VERSION"
    good = version.read_text()
    version.write_text("6" + good[1:])
    with pytest.raises(StorageFailed, match="layout is 6"):
        async with opened(tmp_path, metadata):
            pass
    version.write_text("nonsense")
    with pytest.raises(StorageFailed, match=r"no bookie's.*copy VERSION from .*journal"):
        async with opened(tmp_path, metadata):
            pass
    version.write_text(good.replace("embedded", "embedned"))
    with pytest.raises(StorageFailed, match=r"another bookie.*copy VERSION from .*journal"):
        async with opened(tmp_path, metadata):
            pass
    version.unlink()
    with pytest.raises(StorageFailed, match=r"lost its cookie.*copy VERSION from .*journal"):
        async with opened(tmp_path, metadata):
            pass
    other = tmp_path / "bookie" / "journal" / "current" / "VERSION"
    other.unlink()
    with pytest.raises(StorageFailed, match="no cookie: restore VERSION from a backup"):
        async with opened(tmp_path, metadata):
            pass
    version.write_text(good)
    other.write_text(good)
    (tmp_path / "bookie").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="is empty"):
        async with opened(tmp_path, metadata):
            pass


async def test_a_moved_directory_works(tmp_path):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
    (tmp_path / "bookie").rename(tmp_path / "new")
    async with open_embedded(tmp_path / "new", metadata, SETTINGS, on_fatal=pytest.fail) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert await reader.read(0, 0, 1) == [b"x"]


@pytest.mark.parametrize("missing", ["lastMark", "journal"])
async def test_lost_pieces_are_named(tmp_path, missing):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
    if missing == "lastMark":
        (tmp_path / "bookie/ledgers/current/lastMark").unlink()
    else:
        for path in (tmp_path / "bookie/journal/current").glob("*.txn"):
            path.unlink()
    with pytest.raises(Corrupted, match="lastMark"):
        async with opened(tmp_path, metadata):
            pass


async def test_garbage_comes_back(tmp_path):
    settings = msgspec.structs.replace(SETTINGS, entry_log_size_max_bytes=200_000)
    metadata = DictMetadata()
    async with opened(tmp_path, metadata, settings) as store:
        writers = [await store.create({}) for _ in range(10)]
        for _ in range(5):
            for writer in writers:
                await append(writer, *[b"%d" % writer.ledger_id * 100] * 100)
            await store.checkpoint()
        for writer in writers:
            await writer.close()
        current = tmp_path / "bookie" / "ledgers" / "current"
        before = sum(path.stat().st_size for path in current.glob("*.log"))
        for writer in writers[1:]:
            await store.delete(writer.ledger_id)
        await store.collect(compact_below=0.8)
        await store.checkpoint()
        after = sum(path.stat().st_size for path in current.glob("*.log"))
        assert after < before / 3
        statistics = store.statistics()
        assert statistics.ledgers_deleted == 9
        assert statistics.bytes_compacted > 0
        kept = writers[0]
        reader = await store.open(kept.ledger_id, recover=False)
        assert await reader.read(0, 499, 1 << 20) == [b"%d" % kept.ledger_id * 100] * 500
        with pytest.raises(LedgerNotFound):
            await store.open(writers[1].ledger_id, recover=False)
    async with opened(tmp_path, metadata, settings) as store:
        reader = await store.open(kept.ledger_id, recover=False)
        assert await reader.read(0, 499, 1 << 20) == [b"%d" % kept.ledger_id * 100] * 500


async def test_a_ledger_born_during_a_collection_is_safe(tmp_path):
    settings = msgspec.structs.replace(SETTINGS, entry_log_size_max_bytes=5_000)

    class Busy(DictMetadata):
        store = None

        async def get(self, path):
            store, self.store = self.store, None
            if store is not None:
                self.born = await store.create({})
                for _ in range(5):
                    await append(self.born, *[b"x" * 100] * 30)
                    await store.checkpoint()
            return await super().get(path)

    metadata = Busy()
    async with opened(tmp_path, metadata, settings) as store:
        for _ in range(3):
            writer = await store.create({})
            await append(writer, *[b"y" * 100] * 40)
            await store.checkpoint()
            await store.delete(writer.ledger_id)
        metadata.store = store
        await store.collect(compact_below=0.9)
        assert store.statistics().entry_logs_unlinked >= 1
        assert await metadata.born.read(0, 149, 1 << 20) == [b"x" * 100] * 150
        await store.collect(compact_below=0.9)
        assert await metadata.born.read(0, 149, 1 << 20) == [b"x" * 100] * 150


async def test_idle_restarts_leave_one_journal(tmp_path):
    metadata = DictMetadata()
    for _ in range(4):
        async with opened(tmp_path, metadata):
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(5):
                while len(list((tmp_path / "bookie/journal/current").glob("*.txn"))) > 1:
                    await trio.lowlevel.checkpoint()


async def test_a_loop_hears_when_a_group_is_delivered(tmp_path, nursery):
    """Between the two it gathers what the results cause, and sends it at once."""
    loop = NotedLoop(nursery)
    async with open_embedded(
        tmp_path, DictMetadata(), SETTINGS, on_fatal=pytest.fail, loop=loop
    ) as store:
        writer = await store.create({})
        loop.said.clear()
        store.begin_group()
        for name in ("a", "b"):
            writer.append([b"x"], lambda error, name=name: loop.said.append(name))
        store.flush_group()
        while "settle" not in loop.said:
            await loop.changed()
        assert loop.said == ["begin", "a", "b", "settle"]
    loop.scope.cancel()


async def test_a_closed_store_refuses(tmp_path):
    async with opened(tmp_path, DictMetadata()) as store:
        writer = await store.create({})
        await append(writer, b"x")
    with pytest.raises(StorageFailed, match="closed"):
        await store._client._link.fence(writer.ledger_id, b"")


async def test_metadata_trouble_ends_a_round_and_deletes_nothing(tmp_path):
    class Troubled(DictMetadata):
        broken = False

        async def get(self, path):
            if self.broken:
                raise StorageFailed("no answer")
            return await super().get(path)

    metadata = Troubled()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
        await store.checkpoint()
        metadata.broken = True
        with pytest.raises(StorageFailed):
            await store.collect(compact_below=0.0)
        assert store.statistics().ledgers_deleted == 0
        assert await writer.read(0, 0, 1) == [b"x"]


@pytest.mark.parametrize("where", ["payload", "header", "length"])
async def test_rot_in_an_entry_log_is_corruption_and_never_absence(tmp_path, where):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"aaaaaaaa", b"bbbbbbbb", b"cccccccc")
        await writer.close()
    (path,) = (tmp_path / "bookie" / "ledgers" / "current").glob("*.log")
    data = bytearray(path.read_bytes())
    second = 1024 + 48
    data[second + {"payload": 42, "header": 8, "length": 1}[where]] ^= 0x40
    path.write_bytes(data)
    async with opened(tmp_path, metadata) as store:
        reader = await store.open(writer.ledger_id, recover=False)
        assert await reader.read(0, 0, 1) == [b"aaaaaaaa"]
        with pytest.raises(Corrupted):
            await reader.read(1, 1, 1)
        assert await reader.read(2, 2, 1) == [b"cccccccc"]


async def test_a_missing_entry_log_is_corruption_and_never_absence(tmp_path):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"a")
        await writer.close()
    (path,) = (tmp_path / "bookie" / "ledgers" / "current").glob("*.log")
    path.unlink()
    async with opened(tmp_path, metadata) as store:
        reader = await store.open(writer.ledger_id, recover=False)
        with pytest.raises(Corrupted):
            await reader.read(0, 0, 1)
        with pytest.raises(EntryNotFound):
            await reader.read(1, 1, 1)


async def test_a_failed_journal_acknowledges_nothing_and_says_so_once(tmp_path):
    fatal = []
    async with opened(tmp_path, DictMetadata(), on_fatal=fatal.append) as store:
        writer = await store.create({})
        await append(writer, b"safe")

        bad = os.open(os.devnull, os.O_RDONLY)
        os.dup2(bad, store._parts.journal._groups.file.fd)
        os.close(bad)
        outcome = Outcome(2)
        writer.append([b"lost"], outcome)
        await trio.lowlevel.checkpoint()
        writer.append([b"lost too"], outcome)
        assert all(isinstance(error, StorageFailed) for error in await outcome.wait())
        assert len(fatal) == 1
        assert not store.writable()
        assert writer.last_confirmed == 0
        other = await store.create({})
        outcome = Outcome()
        other.append([b"no"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, StorageFailed)
        assert await writer.read(0, 0, 1) == [b"safe"]


async def test_runs_larger_than_any_buffer(tmp_path):
    metadata = DictMetadata()
    payloads = [bytes([i]) * 700_000 for i in range(20)] + [b"", b"x" * 5_000_000]
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        assert await append(writer, *payloads) == 0
        assert await append(writer, b"next") == 22
        assert await writer.read(0, 22, 1 << 30) == [*payloads, b"next"]
        await store.checkpoint()
        assert await writer.read(0, 22, 1 << 30) == [*payloads, b"next"]
        assert len(await writer.read(0, 22, 2_000_000)) == 2


async def test_journals_roll_and_are_used_again(tmp_path):
    settings = msgspec.structs.replace(
        SETTINGS, journal_size_max_bytes=128 * 1024, journal_spares_max=2
    )
    metadata = DictMetadata()
    directory = tmp_path / "bookie" / "journal" / "current"
    async with opened(tmp_path, metadata, settings) as store:
        writer = await store.create({})
        for i in range(60):
            await append(writer, *[b"%d" % i * 20] * 200)
            if i % 10 == 9:
                await store.checkpoint()
        assert len(list(directory.glob("*.txn"))) == 1
        assert len(list(directory.glob("spare.*"))) == 2
        last = writer.last_confirmed
    async with opened(tmp_path, metadata, settings) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert reader.last_confirmed == last
        assert len(await reader.read(0, last, 1 << 30)) == 12_000


async def test_a_start_that_was_cut_off_goes_on(tmp_path):
    metadata = DictMetadata()
    await metadata.put(LAYOUT, LAYOUT_VALUE, ABSENT)
    async with opened(tmp_path, metadata):
        pass
    assert await metadata.get(LAYOUT) == Versioned(LAYOUT_VALUE, 0)
    assert (await metadata.get(INSTANCE_ID)).version == 0


async def test_of_two_bookies_that_begin_a_cluster_the_first_names_it(tmp_path):
    class Raced(DictMetadata):
        async def put(self, path, value, expected):
            if path == INSTANCE_ID:
                await super().put(path, b"theirs", ABSENT)
            return await super().put(path, value, expected)

    metadata = Raced()
    async with opened(tmp_path, metadata):
        pass
    assert await metadata.get(INSTANCE_ID) == Versioned(b"theirs", 0)
    assert "theirs" in (tmp_path / "bookie/ledgers/current/VERSION").read_text()


async def test_two_bookies_with_one_id_on_different_disks(tmp_path):
    metadata = MemoryMetadata()
    async with opened(tmp_path / "one", metadata):
        with pytest.raises(StorageFailed, match="running already"):
            async with opened(tmp_path / "other", metadata):
                pass
        assert not list((tmp_path / "other").rglob("VERSION"))
    with pytest.raises(StorageFailed, match="is it the right disk"):
        async with opened(tmp_path / "other", metadata):
            pass
    async with opened(tmp_path / "one", metadata):
        pass


async def test_a_bookie_that_has_lost_its_lease_fails(tmp_path):
    metadata, reasons = MemoryMetadata(), []
    async with opened(tmp_path, metadata, on_fatal=reasons.append):
        metadata.expire()
    (reason,) = reasons
    assert "its lease is lost" in reason
