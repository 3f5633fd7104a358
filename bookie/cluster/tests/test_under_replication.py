"""The list of ledgers that lack replicas."""

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import UnderReplicatedLedger, under_replicated
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "id")
PARENT = "/ledgers/underreplication/ledgers"


async def test_they_are_found_wherever_they_are() -> None:
    store = MemoryMetadata()
    assert await under_replicated(store, CLUSTER) == []
    for path, text in {
        "0000/0000/0000/0007/urL0000000007": 'replica: "a:1"\nreplica: "b"\nctime: 12\n',
        "0000/0001/2a05/f200/urL5000000000": 'replica: "a:1"\n',
        "0000/0000/0000/0001/urL0000000001": "",
        "0000/0000/0000/0001/other": "",
    }.items():
        await store.put(f"{PARENT}/{path}", text.encode(), ABSENT)
    assert await under_replicated(store, CLUSTER) == [
        UnderReplicatedLedger(1, ()),
        UnderReplicatedLedger(7, ("a:1", "b"), 12),
        UnderReplicatedLedger(5_000_000_000, ("a:1",)),
    ]
