"""What is its own when a thread writes: it does where nobody else can."""

import pytest

from magnetar.bookie.format.tests.journal_records import found, record
from magnetar.bookie.machine.disk import SystemDirectory
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.server.journal.thread_writer import ThreadWriter
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.bookie.tests.real_disk import journal_files_at


async def test_without_direct_writes_a_thread_syncs(tmp_path, monkeypatch):
    monkeypatch.setattr(SystemDirectory, "direct", False)
    files = journal_files_at(tmp_path, size_max=1 << 20, spares_max=0)
    journal = Journal(files, 1, BookieSettings(), pytest.fail, pytest.fail, system_machine())
    journal.start(NotedLoop())
    assert type(journal._writer) is ThreadWriter
    results = []
    for i in range(50):
        journal.append(record(i), results.append)
        journal.hand_over()
    await journal.stop()
    assert results == [None] * 50
    assert found(tmp_path) == list(range(50))
    assert not journal._groups.unsynced
