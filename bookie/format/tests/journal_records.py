"""What the tests of writing write, find again and break."""

import os
from contextlib import contextmanager

from magnetar.bookie.format import entries
from magnetar.bookie.format.journal_scan import scan


def record(i, size=100):
    return entries.seal(1, i, -1, 0, [b"%07d" % i * (size // 7)]).blob


def found(directory):
    ids = []
    for path in sorted(directory.glob("*.txn"), key=lambda path: int(path.stem, 16)):
        data = path.read_bytes()
        for run in scan(lambda offset, size, data=data: data[offset : offset + size], 512):
            assert entries.count_intact(run) == run.count
            ids += range(run.first, run.last + 1)
    return ids


@contextmanager
def broken_file(journal):
    """Every write fails: the journal's descriptor is open for reading only."""
    fd = journal._groups.file.fd
    good, bad = os.dup(fd), os.open(os.devnull, os.O_RDONLY)
    os.dup2(bad, fd)
    try:
        yield
    finally:
        os.dup2(good, fd)
        os.close(good)
        os.close(bad)


async def stop(journal, make):
    make.stop_watching()
    await journal.stop()
