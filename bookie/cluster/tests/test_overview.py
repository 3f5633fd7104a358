import pytest

from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.overview import ClusterOverview
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.cookie import of_directories
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.bookie_administration import ReplicationDetails
from magnetar.core.testing.metadata import overwrite

INFO = ServiceInfo((BookieEndpoint("bookie", "h", 7),)).encode()


async def test_bookies_and_their_addresses() -> None:
    store = MemoryMetadata()
    cluster = await initialize_cluster(store, "one")
    overview = ClusterOverview(store, cluster)
    assert await overview.bookies() == {}
    for name, value in (("a", INFO), ("old:1", b""), ("odd", b""), ("readonly/b", INFO)):
        await overwrite(store, f"/ledgers/available/{name}", value)
    assert await overview.bookies() == {"a": "h:7", "old:1": "old:1", "odd": ""}
    assert await overview.read_only_bookies() == {"b": "h:7"}
    await Cookies(store, cluster).write(of_directories("gone", "j", ["l"], "one"))
    assert await overview.known_bookies() == ["gone"]


async def test_what_waits_for_repair_and_who_does_it() -> None:
    store = MemoryMetadata()
    overview = ClusterOverview(store, await initialize_cluster(store, "one"))
    assert await overview.replication() == ReplicationDetails(None, True, False)
    root = "/ledgers/underreplication"
    await overwrite(store, f"{root}/ledgers/0000/0000", b"")
    await overwrite(store, f"{root}/auditorelection/V_0000000002", b'bookieId: "second"\n')
    await overwrite(store, f"{root}/auditorelection/V_0000000001", b'bookieId: "first"\n')
    assert await overview.replication() == ReplicationDetails("first", True, False)
    await overwrite(store, f"{root}/ledgers/0000/0000/0000/0001/urL0000000001", b"")
    await overwrite(store, f"{root}/disable", b"")
    assert await overview.replication() == ReplicationDetails("first", False, True)


async def test_ledgers() -> None:
    store = MemoryMetadata()
    cluster = await initialize_cluster(store, "one")
    overview = ClusterOverview(store, cluster)
    made = ledger_metadata.fresh(("a", "b"), (2, 1), {"k": b"v"}, 5, 1)
    made.password = b"secret"
    await ClusterLedgers(store, cluster).create(3, made)
    assert await overview.ledgers() == [3]
    described = await overview.ledger(3)
    assert described["allEnsembles"] == {"0": [{"id": "a"}, {"id": "b"}]}
    assert (described["ledgerId"], described["metadataFormatVersion"]) == (3, 3)
    assert described["ctoken"] == 1
    assert (described["state"], described["digestType"]) == ("OPEN", "CRC32C")
    assert (described["writeQuorumSize"], described["ackQuorumSize"]) == (2, 1)
    assert described["customMetadata"] == {"k": "dg=="}
    assert "secret" not in str(described)
    await overview.delete_ledger(3)
    with pytest.raises(LedgerNotFound):
        await overview.ledger(3)
