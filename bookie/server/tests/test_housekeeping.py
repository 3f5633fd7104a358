"""The flusher: nothing that was appended waits for the next one."""

import pytest
import trio
import trio.testing

from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server import housekeeping
from magnetar.bookie.server.housekeeping import Flusher
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.tests.contract_ledger_store import append


class Appends:
    """As much of a journal as a flusher knows."""

    def __init__(self) -> None:
        self.pending: list[str] = []
        self.handed: list[str] = []

    def append(self, what: str) -> bool:
        self.pending.append(what)
        return len(self.pending) == 1

    def hand_over(self) -> None:
        self.handed += self.pending
        self.pending.clear()


async def test_an_append_wakes_it(nursery):
    journal = Appends()
    flusher = Flusher(journal)
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    assert journal.append("a")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["a"]
    flusher.begin_group()
    assert journal.append("b")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["a"]
    flusher.flush_group()
    assert journal.handed == ["a", "b"]
    nursery.cancel_scope.cancel()


async def test_a_loop_that_flushes_wakes_nobody(nursery):
    journal = Appends()
    flusher = Flusher(journal)
    flusher.leave_to_loop()
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    for what in ("a", "b"):
        journal.append(what)
        flusher.wake()
        await trio.testing.wait_all_tasks_blocked()
        assert what not in journal.handed
        flusher.flush_group()
        assert journal.handed[-1] == what
    nursery.cancel_scope.cancel()


async def test_what_is_appended_while_it_is_awake_is_handed_over_too(nursery):
    """Such an append is the first of its group: no other one would wake the flusher for it."""
    journal = Appends()
    flusher = Flusher(journal)

    def answer() -> None:
        if journal.append("in an answer"):
            flusher.wake()

    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    flusher.call_soon(answer)
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["in an answer"]
    nursery.cancel_scope.cancel()


async def test_what_a_delivery_asks_for_is_done_too(nursery):
    """A journal that fails tells so from within the hand-over."""
    journal = Appends()
    flusher = Flusher(journal)
    results = []

    def hand_over() -> None:
        if journal.pending:
            journal.pending.clear()
            flusher.call_soon(lambda: results.append("refused"))

    journal.hand_over = hand_over
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    journal.append("a")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert results == ["refused"]
    nursery.cancel_scope.cancel()


async def test_the_disk_is_looked_at_whenever_much_was_written(tmp_path, monkeypatch, caplog):
    """The interval is for what others write."""
    settings = BookieSettings(disk_check_interval_seconds=3600, write_cache_bytes=20_000)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        writer = await store.create({})
        monkeypatch.setattr(SystemDisk, "usage", lambda disk, directory: DiskUsage(0.96, 1))
        await append(writer, b"x")
        assert store.writable()
        with trio.fail_after(10):
            while store.writable():
                await append(writer, b"x" * 1000)
        assert "nothing is written any more" in caplog.text


async def read_from_disk(store: EmbeddedStore) -> None:
    writer = await store.create({})
    await append(writer, b"x" * 1000)
    await store.checkpoint()
    info = await writer.close()
    reader = await store.open(info.ledger_id, recover=False)
    assert await reader.read(0, 0, 10_000) == [b"x" * 1000]


async def test_what_was_read_from_the_disk_is_not_cached_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(housekeeping, "AGE_SECONDS", 0.001)
    async with open_embedded(
        tmp_path, DictMetadata(), BookieSettings(), on_fatal=pytest.fail
    ) as store:
        await read_from_disk(store)
        assert store.statistics().reads_from_disk == 1
        with trio.fail_after(10):
            while store.statistics().read_cache_bytes:
                await trio.lowlevel.checkpoint()


async def test_what_a_start_has_read_is_dropped(tmp_path):
    async with open_embedded(
        tmp_path, DictMetadata(), BookieSettings(), on_fatal=pytest.fail
    ) as store:
        await read_from_disk(store)
        assert store.statistics().read_cache_bytes > 1000
        store.drop_read_cache()
        assert store.statistics().read_cache_bytes == 0
