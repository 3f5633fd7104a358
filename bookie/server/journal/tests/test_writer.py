"""The journal, written by the kernel, by a thread and by the loop: groups, order, failures."""

import errno
import itertools
import threading

import pytest
import trio

from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.journal import PADDING_BYTES_MAX
from magnetar.bookie.format.journal_scan import TEAR_BYTES_MAX
from magnetar.bookie.format.tests.journal_records import broken_file, found, record, stop
from magnetar.bookie.server.journal import inventory, writer
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.journal.groups import BATCH_BYTES_MAX, GROUP_BYTES
from magnetar.core.kernel.errors import StorageFull

MIB = 1024 * 1024


async def test_all_is_written_and_told_in_order(make, tmp_path):
    journal = make()
    results = []
    for i in range(500):
        journal.append(record(i), lambda error, i=i: results.append((i, error)))
        if i % 7 == 0:
            journal.hand_over()
    await stop(journal, make)
    assert results == [(i, None) for i in range(500)]
    assert found(tmp_path) == list(range(500))
    assert journal.synced.offset % 512 == 0
    assert journal.statistics().groups < 75
    assert journal.statistics().sync_seconds.count == journal.statistics().groups


async def test_files_roll_and_every_record_is_in_one_of_them(make, tmp_path):
    journal = make(size_max=64 * 1024)
    for i in range(100):
        journal.append(record(i, 7000), None)
        journal.hand_over()
        while i % 5 == 0 and journal.queue_bytes:
            await trio.lowlevel.checkpoint()
    await stop(journal, make)
    assert len(list(tmp_path.glob("*.txn"))) > 5
    assert found(tmp_path) == list(range(100))


async def test_records_around_the_buffers_size(make, tmp_path):
    """The end of the buffer may fall into a record, into the padding, or between them."""
    journal = make(size_max=64 * MIB)
    sizes = [MIB - 560 + i for i in range(0, 60, 4)] + [3 * MIB + 5]
    for i, size in enumerate(sizes):
        blob = entries.seal(1, i, -1, 0, [b"x" * size]).blob
        synced = trio.Event()
        journal.append(blob, lambda error, synced=synced: synced.set())
        journal.hand_over()
        await synced.wait()
    await stop(journal, make)
    assert found(tmp_path) == list(range(len(sizes)))


@pytest.mark.parametrize("what", [(JournalFiles, "create"), (inventory, "write")])
async def test_a_disk_without_room_refuses_and_later_takes_again(make, tmp_path, monkeypatch, what):
    """Unlike a failure it is not the end: what was refused is not in the journal."""

    def full(*given, **more):
        raise OSError(errno.ENOSPC, "No space left on device")

    async def outcome(number, size):
        results = []
        ended = trio.Event()
        journal.append(record(number, size), lambda error: (results.append(error), ended.set()))
        journal.hand_over()
        await ended.wait()
        return results[0]

    looks = []
    journal = make(size_max=64 * 1024, on_full=lambda: looks.append("full"))
    working = getattr(*what)
    monkeypatch.setattr(*what, full)
    stored, refused = [], 0
    for number in range(40):
        error = await outcome(number, 7000)
        if error is None:
            stored.append(number)
        else:
            assert isinstance(error, StorageFull)
            refused += 1
    assert 0 < len(stored) < 40
    assert len(looks) == refused == 40 - len(stored)
    assert journal.failed is None
    monkeypatch.setattr(*what, working)
    for number in range(40, 60):
        assert await outcome(number, 7000) is None
    await stop(journal, make)
    assert found(tmp_path) == [*stored, *range(40, 60)]


async def test_after_a_failure_nothing_is_written_or_acknowledged(make, tmp_path):
    failures = []
    journal = make(on_failed=failures.append)
    results = []
    journal.append(record(0), results.append)
    journal.hand_over()
    while not results:
        await trio.lowlevel.checkpoint()
    with broken_file(journal):
        journal.append(record(1), results.append)
        journal.hand_over()
        while len(results) < 2:
            await trio.lowlevel.checkpoint()
    # The disk "recovers", and is not believed.
    for i in (2, 3):
        journal.append(record(i), results.append)
        journal.hand_over()
        await trio.lowlevel.checkpoint()
    await stop(journal, make)
    assert results[0] is None
    assert all(error is not None for error in results[1:])
    assert len(results) == 4
    assert len(failures) == 1
    assert found(tmp_path) == [0]
    assert journal.synced <= journal_format.Mark(1, 1024)
    assert not make.synced or journal.synced == journal_format.Mark(1, 1024)


async def test_our_own_mistake_is_a_failure_too(make, tmp_path):
    failures = []
    journal = make(on_failed=failures.append)
    results = []

    def mistake(size):
        raise ZeroDivisionError

    journal._groups.begin = mistake
    journal.append(record(0), results.append)
    await stop(journal, make)
    assert len(results) == 1
    assert results[0] is not None
    assert len(failures) == 1


async def test_nor_does_a_mistake_in_a_thread_leave_appends_waiting(make, monkeypatch):
    def mistake(*given, **more):
        raise ZeroDivisionError

    failures = []
    journal = make(size_max=64 * 1024, on_failed=failures.append)
    monkeypatch.setattr(JournalFiles, "create", mistake)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    results = []
    with trio.fail_after(5):
        while not failures:
            journal.append(record(len(results), 7000), results.append)
            journal.hand_over()
            await trio.lowlevel.checkpoint()
    await stop(journal, make)
    assert results[-1] is not None


async def test_a_full_disk_does_not_keep_it_from_stopping(make, tmp_path, monkeypatch):
    """The next file, which is not needed any more, cannot be struck from the inventory then."""
    journal = make(size_max=64 * 1024)
    results = []
    for number in range(5):
        journal.append(record(number, 7000), results.append)
        journal.hand_over()
        while len(results) == number:
            await trio.lowlevel.checkpoint()
    assert journal._groups.file.half_full

    def full(directory, sizes):
        raise OSError(errno.ENOSPC, "No space left on device")

    journal._groups._next._join()
    monkeypatch.setattr(inventory, "write", full)
    with trio.fail_after(5):
        await stop(journal, make)
    assert results == [None] * 5
    assert found(tmp_path) == list(range(5))


async def test_the_loop_hears_before_the_first_of_a_group_and_after_the_last(make, tmp_path):
    journal = make()
    order = make.loop.said
    for i in range(3):
        journal.append(record(i), lambda error, i=i: order.append(i))
    await stop(journal, make)
    assert order == ["begin", 0, 1, 2, "settle"]


async def test_a_large_group_is_told_in_slices(make, tmp_path):
    """A slice ends with the call during which its time is over; the loop turns behind it."""
    journal = make()
    order = make.loop.said
    time = itertools.count(0.0, writer.SLICE_SECONDS / 2)  # so much goes by between two looks
    journal._now = lambda: next(time)
    for i in range(5):
        journal.append(record(i), lambda error, i=i: order.append(i))
    journal.hand_over()
    with trio.fail_after(10):
        while 4 not in order:
            await trio.lowlevel.checkpoint()
    assert order == [
        *("begin", 0, 1, "settle"), *("begin", 2, 3, "settle"), *("begin", 4, "settle")
    ]  # fmt: skip
    assert journal.queue_bytes == 0
    await stop(journal, make)


async def test_a_stop_tells_all_slices(make, tmp_path):
    journal = make()
    results = []
    time = itertools.count(0.0, 2 * writer.SLICE_SECONDS)
    journal._now = lambda: next(time)
    for i in range(5):
        journal.append(record(i), lambda error, i=i: results.append((i, error)))
    await stop(journal, make)
    assert results == [(i, None) for i in range(5)]


async def test_groups_have_a_bound_however_much_comes_at_once(make, tmp_path):
    """A scan takes what stands far behind a tear for a later group: no group is so large."""
    journal = make(size_max=64 * MIB)
    results = []
    count = TEAR_BYTES_MAX // MIB + 4
    for i in range(count):
        journal.append(record(i, MIB), lambda error, i=i: results.append((i, error)))
    journal.hand_over()
    sizes = []
    begin = journal._groups.begin
    journal._groups.begin = lambda size: sizes.append(size) or begin(size)
    await stop(journal, make)
    assert results == [(i, None) for i in range(count)]
    assert found(tmp_path) == list(range(count))
    assert len(sizes) >= 2
    assert max(sizes) < TEAR_BYTES_MAX
    assert journal.queue_bytes == 0


def test_nor_is_a_group_with_the_largest_entry():
    largest = GROUP_BYTES + max(BATCH_BYTES_MAX, entries.ENTRY_BYTES_MAX) + PADDING_BYTES_MAX
    assert largest < TEAR_BYTES_MAX


async def test_the_largest_entry_is_found_again(make, tmp_path):
    journal = make(size_max=64 * MIB)
    results = []
    size = entries.ENTRY_BYTES_MAX - entries.OVERHEAD_BYTES
    for number, each in enumerate((100, size, 100)):
        journal.append(record(number, each), results.append)
    await stop(journal, make)
    assert results == [None] * 3
    assert found(tmp_path) == [0, 1, 2]


async def test_a_record_in_two_pieces_stays_in_one_group(make, tmp_path):
    """The second piece does not fit where the first would."""
    journal = make(size_max=64 * MIB)
    results = []
    journal.append(record(0, BATCH_BYTES_MAX - 500), results.append)
    run = entries.seal_apart(1, 1, -1, 0, b"x" * MIB, b"head")
    assert journal.append(run.blob, results.append, run.apart) is False
    journal.hand_over()
    await stop(journal, make)
    assert results == [None, None]
    assert found(tmp_path) == [0, 1]
    assert journal.statistics().groups == 2
