import pytest

from magnetar.bookie.cluster import cluster
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.format.layout import HIERARCHICAL, LAYOUTS
from magnetar.core.kernel.errors import Corrupted, Invalid, NotFound
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite


async def test_a_cluster_is_found_by_its_layout() -> None:
    store = MemoryMetadata()
    with pytest.raises(NotFound, match="there is no BookKeeper cluster at /mine"):
        await cluster.find(store, "/mine")
    await overwrite(store, "/mine/LAYOUT", LAYOUTS["longhierarchical"].encode())
    assert await cluster.find(store, "/mine") == BookKeeperCluster(
        "/mine", LAYOUTS["longhierarchical"], None
    )
    await overwrite(store, "/mine/INSTANCEID", b"one")
    found = await cluster.find(store, "/mine", "longhierarchical")
    assert found.instance_id == "one"
    assert found == await cluster.find(store, "/mine", "null")
    assert found.ledger(1) == "/mine/000/0000/0000/0000/L0001"
    with pytest.raises(Invalid, match="laid out longhierarchical, not hierarchical"):
        await cluster.find(store, "/mine", "hierarchical")
    await overwrite(store, "/mine/LAYOUT", b"?")
    with pytest.raises(Corrupted):
        await cluster.find(store, "/mine")


@pytest.mark.parametrize("name", ["hierarchical", "flat"])
async def test_who_comes_first_chooses_the_layout(name: str) -> None:
    """As after Pulsar's `initialize-cluster-metadata`."""
    store = MemoryMetadata()
    with pytest.raises(NotFound):
        await cluster.join(store)
    await overwrite(store, "/ledgers/INSTANCEID", b"one")
    with pytest.raises(NotFound):
        await cluster.find(store)
    joined = await cluster.join(store, layout=None if name == "hierarchical" else name)
    assert joined == BookKeeperCluster("/ledgers", LAYOUTS[name], "one")
    assert await cluster.find(store) == joined == await cluster.join(store, layout="null")
    other = "flat" if name == "hierarchical" else "hierarchical"
    with pytest.raises(Invalid, match=f"laid out {name}"):
        await cluster.join(store, layout=other)


def test_names_that_are_no_ledgers() -> None:
    for name in ("available", "cookies", "LAYOUT", "INSTANCEID", "idgen", "ID-0000000001"):
        assert cluster.is_special(name)
        assert not HIERARCHICAL.belongs_to_ledgers(name)
    assert not cluster.is_special("00")
