"""The steps of a checkpoint: what can be read after each, and what is durable."""

import pytest

from magnetar.bookie.format.entries import seal
from magnetar.bookie.format.journal import Mark
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.machine.rocksdb import RocksDatabases
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.recovery.ledger_storage import open_storage
from magnetar.bookie.server import ledger_storage
from magnetar.bookie.server.cache.write_cache import Half
from magnetar.bookie.server.directories import LEDGER_ROWS, read_last_mark
from magnetar.bookie.server.disk_usage import disk_watch
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.index import locations
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.ledger_storage import (
    append_half,
    make_durable,
    make_mark,
    put_index,
)
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.real_disk import directories_at
from magnetar.core.kernel.errors import Corrupted


async def open_at(path):
    machine, directories, settings = system_machine(), directories_at(path), BookieSettings()
    disk = disk_watch(machine.disk, directories.logs, settings)
    opened, _ = await open_storage(machine, directories, None, settings, disk)
    return opened


def write_out(storage, half, rows, deleted):
    put_index(storage, append_half(storage, half, deleted), rows, deleted)


@pytest.fixture
async def storage(tmp_path):
    opened = await open_at(tmp_path)
    yield opened
    opened.close()


def half(*ledger_ids):
    made = Half()
    for ledger_id in ledger_ids:
        made.put(seal(ledger_id, 0, -1, 0, [b"%d-%d" % (ledger_id, i) for i in range(10)]))
    return made


def read(storage, ledger_id, entry_id):
    location = storage.locations.find(ledger_id, entry_id)
    run = storage.reader.read(ledger_id, entry_id, location, 4096)
    return run.checked_payloads(entry_id, entry_id, 1)


async def test_the_loop_runs_while_many_small_runs_are_written(storage, monkeypatch):
    many = Half()
    monkeypatch.setattr(ledger_storage, "RUNS_PER_BREATH", 10)
    monkeypatch.setattr(locations, "BATCH_PUTS_MAX", 4)
    monkeypatch.setattr(locations, "BREATHE_PUTS", 8)
    for entry_id in range(25):
        many.put(seal(1, entry_id, -1, 0, [b"a"]))
    pauses = []
    monkeypatch.setattr(type(storage), "pause", lambda _: pauses.append("a pause"))
    placed = append_half(storage, many, deleted=())
    assert pauses == ["a pause"] * 2
    put_index(storage, placed, {}, deleted=())
    assert pauses == ["a pause"] * (2 + 3)
    assert read(storage, 1, 24) == [b"a"]


async def test_entries_and_rows_are_found_once_they_are_indexed(storage):
    placed = append_half(storage, half(1, 2), deleted=())
    assert storage.locations.find(1, 0) is None
    put_index(storage, placed, {1: LedgerRow(b"k", fenced=True)}, deleted=())
    assert read(storage, 1, 9) == [b"1-9"]
    assert read(storage, 2, 0) == [b"2-0"]
    assert storage.ledgers.find(1) == LedgerRow(b"k", fenced=True)


async def test_nothing_of_a_deleted_ledger_is_written(storage):
    write_out(storage, half(1, 2), {1: LedgerRow(b"k", fenced=False)}, deleted={1})
    assert storage.locations.find(1, 0) is None
    assert storage.ledgers.find(1) is None
    assert read(storage, 2, 3) == [b"2-3"]


async def test_what_is_deleted_between_the_log_and_the_index_is_not_indexed(storage):
    placed = append_half(storage, half(1, 2), deleted=())
    put_index(storage, placed, {}, deleted={1})
    assert storage.locations.find(1, 0) is None
    assert storage.locations.last(2) is not None


async def test_a_run_may_be_placed_otherwise(storage):
    placed = append_half(storage, half(1, 2), (), lambda run: run.ledger_id << 32 | 4)
    assert [location for _, location in placed] == [1 << 32 | 4, 2 << 32 | 4]
    assert log_ids(storage.directories.logs) == []


async def test_each_index_bears_the_mark_before_the_file_does(storage, monkeypatch):
    seen = []
    sync = storage.ledgers._database.flush

    def flush():
        sync()
        seen.append(read_last_mark(storage.directories))

    monkeypatch.setattr(storage.ledgers._database, "flush", flush)
    make_mark(storage, Mark(7, 512))
    assert seen == [None]
    assert read_last_mark(storage.directories) == Mark(7, 512)
    assert storage.locations.mark() == storage.ledgers.mark() == Mark(7, 512)


async def test_the_entry_log_is_synced_first_and_no_index_if_that_fails(storage, monkeypatch):
    write_out(storage, half(1), {}, deleted=())
    flushed = []
    monkeypatch.setattr(storage.locations._database, "flush", lambda: flushed.append(1))

    def fail():
        raise OSError("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(storage.entry_log, "sync", fail)
        with pytest.raises(OSError, match="no disk"):
            make_durable(storage)
    assert not flushed
    make_durable(storage)
    assert flushed


async def test_an_index_that_does_not_close_is_reported_and_the_rest_closed(tmp_path, caplog):
    opened = await open_at(tmp_path)
    close = opened.locations._database.close

    def fail():
        close()
        raise Corrupted("too late")

    opened.locations._database.close = fail
    opened.close()
    assert "did not close cleanly: too late" in caplog.text
    rows = directories_at(tmp_path).ledgers.directory(LEDGER_ROWS)
    LedgersIndex(rows, RocksDatabases(1 << 20)).close()  # it was let go of
