"""A journal to test, written in each of the ways."""

import pytest
import trio

from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.real_disk import journal_files_at

MIB = 1024 * 1024


@pytest.fixture(params=["kernel", "thread", "loop"])
def make(request, tmp_path, nursery):
    """A function that makes a journal; the kernel's falls back to a thread where it must, and the
    loop writes what is not synced.
    """

    def make_journal(*, size_max=4 * MIB, on_failed=pytest.fail):
        files = journal_files_at(tmp_path, size_max=size_max, spares_max=0)
        settings = BookieSettings(journal_size_max_bytes=size_max, sync=make_journal.synced)
        journal = Journal(files, 1, settings, on_failed, system_machine())
        journal.start(watch)
        return journal

    def watch_here(descriptor, call, due):
        nursery.start_soon(watching, descriptor, call)

    async def watching(descriptor, call):
        with scope:
            while True:
                await trio.lowlevel.wait_readable(descriptor)
                call()

    scope = trio.CancelScope()
    watch = watch_here if request.param == "kernel" else None
    make_journal.synced = request.param != "loop"
    make_journal.by_kernel = request.param == "kernel"
    make_journal.stop_watching = scope.cancel
    return make_journal
