"""What is its own when a thread writes: it may be asked not to wait for the disk."""

from bookie.journal.by_thread import ThreadWriter
from bookie.journal.tests.records import found, record, stop


async def test_without_syncing_everything_is_synced_at_the_end(make, tmp_path):
    journal = make(synced=False)
    assert type(journal._writer) is ThreadWriter
    told = []
    for i in range(50):
        journal.append(record(i), told.append)
        journal.hand_over()
    await stop(journal, make)
    assert told == [None] * 50
    assert found(tmp_path) == list(range(50))
    assert journal.synced.offset % 512 == 0
    assert not journal._groups.unsynced
