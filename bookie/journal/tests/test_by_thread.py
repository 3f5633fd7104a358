"""What is its own when a thread writes: it does where nobody else can."""

import pytest

from magnetar.bookie.journal.by_thread import ThreadWriter
from magnetar.bookie.journal.files import JournalFiles
from magnetar.bookie.journal.tests.records import found, record
from magnetar.bookie.journal.writer import Journal
from magnetar.bookie.settings import BookieSettings


async def test_without_direct_writes_a_thread_syncs(tmp_path, monkeypatch):
    monkeypatch.setattr("magnetar.bookie.journal.files.direct_works", lambda directory: False)
    journal = Journal(
        JournalFiles(tmp_path, size_max=1 << 20, spares_max=0), 1, BookieSettings(), pytest.fail
    )
    journal.start(lambda descriptor, call: None)
    assert type(journal._writer) is ThreadWriter
    told = []
    for i in range(50):
        journal.append(record(i), told.append)
        journal.hand_over()
    await journal.stop()
    assert told == [None] * 50
    assert found(tmp_path) == list(range(50))
    assert not journal._groups.unsynced
