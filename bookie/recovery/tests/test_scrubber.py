"""Rot is told before anybody reads: once, with what it has eaten, and nothing else is."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.bookie.machine.disk import SystemDirectory
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.recovery.ledger_storage import open_storage
from magnetar.bookie.recovery.scrubber import Scrubber, ScrubberStatistics, StoppedError
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.disk_usage import disk_watch
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.tests.contract_ledger_store import append

SETTINGS = BookieSettings(
    sync=False,
    checkpoint_interval_seconds=3600,
    gc_interval_seconds=3600,
    entry_log_size_max_bytes=20_000,
    scrub_bytes_per_second=1 << 30,
)
OWNER = {"pulsar/managed-ledger": b"public/default/persistent/t"}


@asynccontextmanager
async def opened(
    directory: Path, metadata: DictMetadata, **changed: object
) -> AsyncIterator[EmbeddedStore]:
    settings = msgspec.structs.replace(SETTINGS, **changed)
    async with open_embedded(directory, metadata, settings, on_fatal=pytest.fail) as store:
        yield store


async def filled(directory: Path, metadata: DictMetadata, *, count: int, size: int) -> None:
    """Two ledgers, entry by entry in turn."""
    async with opened(directory, metadata) as store:
        writers = [await store.create(OWNER) for _ in range(2)]
        for number in range(count):
            for writer in writers:
                await append(writer, b"<%d>" % number + bytes([number]) * size)
            if number % 4 == 3:
                await store.checkpoint()
        for writer in writers:
            await writer.close()


async def scrub(directory: Path, metadata: DictMetadata, rounds: int = 1) -> ScrubberStatistics:
    """Read all entry logs through, in a bookie that is not running, so many times."""
    machine = system_machine()
    with claim(machine.disk, str(directory)) as directories:
        catalog, watch = (
            ServerCatalog(metadata),
            disk_watch(machine.disk, directories.logs, SETTINGS),
        )
        storage, _ = await open_storage(machine, directories, catalog, SETTINGS, watch)

        async def finished() -> list[int]:
            return log_ids(directories.ledgers)

        scrubber = Scrubber(storage, catalog, finished, SETTINGS.scrub_bytes_per_second)
        try:
            for _ in range(rounds):
                await scrubber.round()
        finally:
            storage.close()
    return scrubber.statistics()


def logs(directory: Path) -> list[Path]:
    return sorted((directory / "ledgers/current").glob("*.log"))


def results(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.message
        for record in caplog.records
        if record.levelno >= logging.ERROR and "rot on the disk" in record.message
    ]


@pytest.mark.parametrize("size", [100, 3000, 200_000])
async def test_a_sound_bookie_has_no_rot(tmp_path, caplog, size: int) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=size)
    seen = await scrub(tmp_path, metadata)
    assert seen.bytes >= sum(path.stat().st_size for path in logs(tmp_path)) - 4096
    assert (seen.damaged_ranges, seen.damaged_entries) == (0, 0)
    assert results(caplog) == []


@pytest.mark.parametrize("size", [100, 3000, 200_000])
@pytest.mark.parametrize("rotten", [bytes(50), bytes(4096), b"\x55", b"\xff" * 700])
async def test_rot_is_told_once(tmp_path, caplog, size: int, rotten: bytes) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=size)
    (path, at) = next(
        (path, path.read_bytes().index(b"<7>"))
        for path in logs(tmp_path)
        if b"<7>" in path.read_bytes()
    )
    with path.open("r+b") as file:
        file.seek(at)
        file.write(rotten)
    seen = await scrub(tmp_path, metadata, rounds=2)
    found = results(caplog)
    assert found, "it was not seen"
    assert "entries 0:7 to 0:" in found[0]
    assert "of public/default/persistent/t" in found[0]
    async with opened(tmp_path, metadata) as store:
        lost = 0
        for ledger_id in (0, 1):
            reader = await store.open(ledger_id, recover=False)
            for entry_id in range(20):
                try:
                    await reader.read(entry_id, entry_id, 1)
                except Exception:  # noqa: BLE001 -- whatever it says: it is not there
                    lost += 1
    assert seen.damaged_entries == lost
    assert seen.damaged_ranges == len(found) == len(set(found))


async def test_a_log_that_is_gone_is_told(tmp_path, caplog) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=1000)
    first, *others = logs(tmp_path)
    assert others
    first.unlink()
    seen = await scrub(tmp_path, metadata, rounds=2)
    assert seen.damaged_ranges == len(results(caplog)) == 2, "one of each ledger"
    assert all("cannot be read" in line for line in results(caplog))


async def test_each_log_is_looked_for_once(tmp_path, monkeypatch) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=1000)
    names, listed = SystemDirectory.names, []

    def counted(directory: SystemDirectory) -> list[str]:
        listed.append(directory)
        return names(directory)

    monkeypatch.setattr(SystemDirectory, "names", counted)
    await scrub(tmp_path, metadata)
    assert 0 < len(listed) < 20, "the index has 40 entries"


async def test_what_nobody_needs_may_rot(tmp_path, caplog) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=1000)
    for path in logs(tmp_path):
        with path.open("r+b") as file:
            file.seek(2000)
            file.write(bytes(1000))
    async with opened(tmp_path, metadata) as store:
        for ledger_id in (0, 1):
            await store.delete(ledger_id)
    await scrub(tmp_path, metadata)
    assert results(caplog) == []


async def test_it_goes_on_where_it_was(tmp_path) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=20, size=1000)
    place = tmp_path / "ledgers/current/scrubbed"
    all_of_them = logs(tmp_path)
    place.write_text(str(int(all_of_them[-2].stem, 16)))
    once = (await scrub(tmp_path, metadata)).bytes
    assert once <= all_of_them[-1].stat().st_size + 4096
    assert place.read_text() == "-1", "the round is over"
    assert (await scrub(tmp_path, metadata)).bytes > once


async def test_a_stop_does_not_wait_for_a_pass_over_the_index(tmp_path: Path) -> None:
    metadata = DictMetadata()
    await filled(tmp_path, metadata, count=4, size=10)
    machine = system_machine()
    with claim(machine.disk, str(tmp_path)) as directories:
        catalog, watch = (
            ServerCatalog(metadata),
            disk_watch(machine.disk, directories.logs, SETTINGS),
        )
        storage, _ = await open_storage(machine, directories, catalog, SETTINGS, watch)

        async def finished() -> list[int]:
            return log_ids(directories.ledgers)

        scrubber = Scrubber(storage, catalog, finished, 1 << 30)
        scrubber.stop()
        with pytest.raises(StoppedError):
            await scrubber.round()
        storage.close()
