import logging

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from magnetar.bookie.cluster.following import RETRY_SECONDS, Following
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite


async def test_it_reads_again_after_a_change_and_after_a_failure(
    nursery: trio.Nursery, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store, seen, failures, forgotten = MemoryMetadata(), [], [], []

    async def read() -> None:
        assert not following.has_changed
        if failures:
            raise failures.pop()
        found = await store.get("/a/b")
        seen.append(None if found is None else found.value)

    following = Following(store, "/a", read, "the letters", forgotten.append)
    await nursery.start(following.run)
    assert seen == [None]
    await overwrite(store, "/a/b", b"1")
    await overwrite(store, "/other", b"2")
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [None, b"1"]
    assert forgotten == ["/a/b"]
    failures.append(StorageFailed("no answer"))
    with caplog.at_level(logging.WARNING):
        await overwrite(store, "/a/b", b"3")
        await trio.testing.wait_all_tasks_blocked()
    assert caplog.messages == ["the letters cannot be read: no answer"]
    assert seen == [None, b"1"]
    mock_clock.jump(RETRY_SECONDS)
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [None, b"1", b"3"]
