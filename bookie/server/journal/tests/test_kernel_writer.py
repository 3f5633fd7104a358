"""What is its own when the kernel writes: where it does, files that are waited for, order."""

import sys

import pytest
import trio

from magnetar.bookie.format.tests.journal_records import broken_file, found, record, stop
from magnetar.bookie.server.journal.kernel_writer import KernelWriter
from magnetar.bookie.server.journal.loop_writer import LoopWriter
from magnetar.bookie.server.journal.thread_writer import ThreadWriter
from magnetar.bookie.tests.real_disk import directory_at

MIB = 1024 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux writes by itself")
async def test_the_kernel_writes_where_it_can(make, tmp_path):
    journal = make()
    by_kernel = make.by_kernel and directory_at(tmp_path).direct
    others = ThreadWriter if make.synced else LoopWriter
    assert type(journal._writer) is (KernelWriter if by_kernel else others)
    await stop(journal, make)


async def test_a_group_that_no_file_is_ready_for_waits_for_one(make, tmp_path):
    """The first file has a quarter of a megabyte; this is more, before any time passes."""
    journal = make(size_max=64 * MIB)
    results = []
    for i in range(40):
        journal.append(record(i, 98_000), lambda error, i=i: results.append((i, error)))
    journal.hand_over()
    await stop(journal, make)
    assert results == [(i, None) for i in range(40)]
    assert found(tmp_path) == list(range(40))


async def test_who_is_stored_hears_it_before_those_hear_of_a_failure_who_came_later(make):
    failures = []
    journal = make(on_failed=failures.append)
    results = []
    journal.append(record(0), lambda error: results.append((0, error)))
    journal.hand_over()
    journal.append(record(1), lambda error: results.append((1, error)))
    journal.hand_over()
    if make.by_kernel:
        with broken_file(journal):  # the first write is under way, the second is not
            while len(results) < 2:
                await trio.lowlevel.checkpoint()
        assert [(i, error is None) for i, error in results] == [(0, True), (1, False)]
        assert len(failures) == 1
    await stop(journal, make)
    assert [i for i, _ in results] == [0, 1]
