import trio
import trio.testing

from magnetar.bookie.cluster.changes import Changes
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT


async def test_what_changes_after_a_look_is_not_missed(nursery) -> None:
    store, waits = MemoryMetadata(), []

    async def wait(changes: Changes) -> None:
        await changes.wait()
        waits.append("over")

    with Changes(store, "/a") as changes:
        changes.begin()
        await store.put("/a/b", b"", ABSENT)
        await changes.wait()
        changes.begin()
        nursery.start_soon(wait, changes)
        await store.put("/other", b"", ABSENT)
        await trio.testing.wait_all_tasks_blocked()
        assert waits == []
        await store.put("/a", b"", ABSENT)
        await trio.testing.wait_all_tasks_blocked()
        assert waits == ["over"]
    assert store._watches == []
