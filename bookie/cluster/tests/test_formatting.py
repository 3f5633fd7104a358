import pytest

from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.formatting import format_cluster, initialize_cluster, nuke_cluster
from magnetar.bookie.format.layout import LAYOUTS
from magnetar.core.kernel.errors import AlreadyExists, NotAllowed, NotFound
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import ignore_loss, overwrite, remove

USED = (
    "/ledgers/00/0000/L0001", "/ledgers/000/0000/0000/0000/L0001", "/ledgers/idgen/x",
    "/ledgers/idgen-long/HOB-0000000001", "/ledgers/cookies/b:1",
    "/ledgers/underreplication/ledgers/0000/urL1", "/ledgers/underreplication/locks/urL1",
    "/ledgers/underreplication/LAYOUT",
)  # fmt: skip


async def used() -> MemoryMetadata:
    store = MemoryMetadata()
    await initialize_cluster(store, "one")
    for path in USED:
        await store.put(path, b"", ABSENT)
    return store


async def test_a_new_cluster() -> None:
    store = MemoryMetadata()
    made = await initialize_cluster(store, "one", "/mine", LAYOUTS["longhierarchical"])
    assert made == await clusters.find(store, "/mine")
    assert made.instance_id == "one"
    assert await store.children("/mine") == ["INSTANCEID", "LAYOUT", "available", "cookies"]
    assert await store.children("/mine/available") == ["readonly"]
    for path in ("/mine", "/mine/available", "/mine/available/readonly", "/mine/cookies"):
        assert (await store.get(path)).value == b""
    with pytest.raises(
        AlreadyExists, match=r"^/mine is a cluster already, with the instance id one$"
    ):
        await initialize_cluster(store, "two", "/mine")
    with pytest.raises(AlreadyExists, match=r"^/p/q/mine is a cluster already"):
        await initialize_cluster(store, "two", "/mine", chroot="/p/q")
    assert (await initialize_cluster(store, "two")).instance_id == "two"


async def test_an_instance_is_enough_to_be_there() -> None:
    """What a process leaves that dies while it begins a cluster."""
    store = MemoryMetadata()
    await overwrite(store, "/ledgers/INSTANCEID", b"one")
    with pytest.raises(AlreadyExists, match="something at /ledgers"):
        await initialize_cluster(store, "one")
    with pytest.raises(NotFound, match="no BookKeeper cluster at /p/ledgers: "):
        await clusters.find(store, chroot="/p")
    await format_cluster(store, "two", force=True)
    assert (await clusters.find(store)).instance_id == "two"


async def test_a_cluster_is_formatted_again() -> None:
    store = await used()
    with pytest.raises(AlreadyExists, match=r"loses all ledgers$"):
        await format_cluster(store, "two")
    await store.lease("/ledgers/available/b:1", b"", ignore_loss)
    await store.lease("/ledgers/available/readonly/b:2", b"", ignore_loss)
    with pytest.raises(AlreadyExists, match="loses all ledgers, and its bookies b:1, b:2 are runn"):
        await format_cluster(store, "two")
    assert (await clusters.find(store)).instance_id == "one"
    made = await format_cluster(store, "two", force=True)
    assert made == await clusters.find(store)
    left = ["INSTANCEID", "LAYOUT", "available", "cookies", "underreplication"]
    assert await store.children("/ledgers/cookies") == []
    assert await store.children("/ledgers") == left
    assert await store.children("/ledgers/underreplication") == ["LAYOUT"]
    assert await store.children("/ledgers/available") == ["b:1", "readonly"]


async def test_a_cluster_is_removed() -> None:
    store = await used()
    with pytest.raises(NotAllowed, match="cluster at /p/ledgers is not the instance two"):
        await nuke_cluster(store, "/ledgers", "two", chroot="/p")
    for path in ("/ledgers/available/b:1", "/ledgers/available/readonly/b:1"):
        await store.lease(path, b"", ignore_loss)
        with pytest.raises(NotAllowed, match="are running: b:1"):
            await nuke_cluster(store, "/ledgers", "one")
        await remove(store, path)
    await overwrite(store, "/ledgers/mine", b"")
    with pytest.raises(NotAllowed, match="what no cluster has: mine"):
        await nuke_cluster(store, "/ledgers", "one")
    await remove(store, "/ledgers/mine")
    await nuke_cluster(store, "/ledgers", "one")
    assert await store.children("/") == []
    await nuke_cluster(store, "/ledgers", "one")


async def test_a_cluster_without_an_instance_is_removed_by_force_only() -> None:
    store = await used()
    await remove(store, "/ledgers/INSTANCEID")
    with pytest.raises(NotAllowed):
        await nuke_cluster(store, "/ledgers", "one")
    await nuke_cluster(store, "/ledgers", None)
    assert await store.children("/") == []
