"""A journal to test, written in each of the ways."""

import msgspec
import pytest

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.bookie.tests.real_disk import journal_files_at

MIB = 1024 * 1024


class UnsubmittedDisk(SystemDisk):
    """Its kernel writes nothing by itself."""

    def submitted_writes(self, buffer):
        return None


@pytest.fixture(params=["kernel", "thread", "loop"])
def make(request, tmp_path, nursery):
    """A function that makes a journal; the kernel's falls back to a thread where it must, and the
    loop writes what is not synced.
    """
    by_kernel = request.param == "kernel"
    loop = NotedLoop(nursery)
    machine = msgspec.structs.replace(
        system_machine(), disk=SystemDisk() if by_kernel else UnsubmittedDisk()
    )

    def make_journal(*, size_max=4 * MIB, on_failed=pytest.fail, on_full=pytest.fail):
        files = journal_files_at(tmp_path, size_max=size_max, spares_max=0)
        settings = BookieSettings(journal_size_max_bytes=size_max, sync=make_journal.synced)
        journal = Journal(files, 1, settings, on_failed, on_full, machine)
        journal.start(loop)
        return journal

    make_journal.loop = loop
    make_journal.synced = request.param != "loop"
    make_journal.by_kernel = by_kernel
    make_journal.stop_watching = loop.scope.cancel
    return make_journal
