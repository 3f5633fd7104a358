"""Nodes that lead to others."""

from magnetar.bookie.cluster.levels import remove_empty_levels
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT


async def test_those_of_apaches_clients_go_with_the_last_one_below_them() -> None:
    store = MemoryMetadata()
    for path in ("/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/x"):
        await store.put(path, b"", ABSENT)
    await store.delete("/a/b/c/d", 0)
    await remove_empty_levels(store, "/a/b/c/d", "/a")
    assert await store.children("/a/b") == ["x"]
    await store.delete("/a/b/x", 0)
    await remove_empty_levels(store, "/a/b/x", "/a")
    assert await store.children("/a") == []
    assert await store.get("/a") is not None, "what is named stays"
