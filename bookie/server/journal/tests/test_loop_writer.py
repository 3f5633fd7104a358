"""What is its own when the loop writes: it tells at once, and what blocks a thread does."""

import threading

import pytest
import trio

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.tests.journal_records import found, record
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.server.journal import loop_writer
from magnetar.bookie.server.journal.files import JournalFile
from magnetar.bookie.server.journal.groups import CommitGroups
from magnetar.bookie.server.journal.loop_writer import LoopWriter
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.bookie.tests.real_disk import journal_files_at

KIB = 1024


@pytest.fixture
async def journal(tmp_path):
    files = journal_files_at(tmp_path, size_max=64 * KIB, spares_max=0)
    made = Journal(files, 1, BookieSettings(sync=False), pytest.fail, pytest.fail, system_machine())
    made.start(NotedLoop())
    assert type(made._writer) is LoopWriter
    return made


async def synced(journal):
    with trio.fail_after(10):
        while journal._groups.unsynced:
            await trio.lowlevel.checkpoint()


async def test_it_is_told_before_handing_over_returns(journal, tmp_path):
    results = []
    for i in range(5):
        journal.append(record(i), results.append)
        assert len(results) == i, "not from within"
        journal.hand_over()
        assert results == [None] * (i + 1)
    assert found(tmp_path) == list(range(5))
    await journal.stop()


async def test_who_is_told_may_bring_more(journal, tmp_path):
    order = []

    def results(number):
        order.append(number)
        if number < 4:
            journal.append(record(number + 2), lambda error: results(number + 2))
            journal.hand_over()

    for i in range(2):
        journal.append(record(i), lambda error, i=i: results(i))
    journal.hand_over()
    assert order == list(range(6))
    await journal.stop()
    assert found(tmp_path) == list(range(6))


async def test_it_is_synced_before_long_and_whole_groups_only(journal, monkeypatch):
    monkeypatch.setattr(loop_writer, "UNSYNCED_SECONDS", 0.0)
    marks = []

    def sync(file):
        if threading.current_thread().name == "journal-sync":
            marks.append(journal._groups._ended)

    monkeypatch.setattr(JournalFile, "sync", sync)
    for i in range(3):
        journal.append(record(i), None)
        journal.hand_over()
        end = journal._groups._ended
        await synced(journal)
        assert journal.synced == end == marks[-1]
    await journal.stop()


async def test_what_comes_during_a_sync_is_synced_after_it(journal, monkeypatch):
    monkeypatch.setattr(loop_writer, "UNSYNCED_SECONDS", 0.0)
    under_way, may_end = threading.Event(), threading.Event()

    def sync(file):
        under_way.set()
        may_end.wait()

    monkeypatch.setattr(JournalFile, "sync", sync)
    results = []
    journal.append(record(0), results.append)
    journal.hand_over()
    await trio.to_thread.run_sync(under_way.wait)
    first = journal._groups._ended
    journal.append(record(1), results.append)
    journal.hand_over()
    assert results == [None, None], "nobody waits for it"
    assert journal.synced == journal_format.Mark(1, journal_format.HEADER_BYTES)
    marks = set()
    may_end.set()
    with trio.fail_after(10):
        while journal._groups.unsynced:
            marks.add(journal.synced)
            await trio.lowlevel.checkpoint()
    assert marks <= {journal_format.Mark(1, journal_format.HEADER_BYTES), first}
    await journal.stop()


async def test_while_the_next_file_is_made_what_comes_waits(journal, tmp_path, monkeypatch):
    may_go_on = threading.Event()
    roll = CommitGroups.roll

    def slowly(groups, size):
        may_go_on.wait()
        roll(groups, size)

    monkeypatch.setattr(CommitGroups, "roll", slowly)
    results = []
    for i in range(20):
        journal.append(record(i, 7000), lambda error, i=i: results.append((i, error)))
        journal.hand_over()
    assert 0 < len(results) < 20
    may_go_on.set()
    await journal.stop()
    assert results == [(i, None) for i in range(20)]
    assert found(tmp_path) == list(range(20))
    assert len(list(tmp_path.glob("*.txn"))) > 1


async def test_a_failed_sync_is_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_writer, "UNSYNCED_SECONDS", 0.0)
    failures, results = [], []
    files = journal_files_at(tmp_path, size_max=64 * KIB, spares_max=0)
    settings = BookieSettings(sync=False)
    journal = Journal(files, 1, settings, failures.append, pytest.fail, system_machine())
    journal.start(NotedLoop())

    def fails(file):
        raise OSError("no")

    monkeypatch.setattr(JournalFile, "sync", fails)
    journal.append(record(0), results.append)
    journal.hand_over()
    with trio.fail_after(10):
        while not failures:
            await trio.lowlevel.checkpoint()
    monkeypatch.undo()
    journal.append(record(1), results.append)
    journal.hand_over()
    assert results[0] is None
    assert results[1] is not None
    await journal.stop()
    assert journal.synced == journal_format.Mark(1, journal_format.HEADER_BYTES)
    assert len(failures) == 1
