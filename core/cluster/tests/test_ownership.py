"""Whoever asks is told one owner."""

from magnetar.core.cluster.ownership import AloneHere, Ownership, OwnershipTable, Peer
from magnetar.core.kernel.names import TopicName

TOPIC = TopicName.parse("t")


async def test_a_broker_alone_owns_everything() -> None:
    alone: Ownership = AloneHere()
    assert await alone.topic(TOPIC) is None
    assert await alone.group("g") is None
    assert await alone.transaction("x") is None
    assert list(alone.peers()) == []


async def test_a_table_says_what_is_elsewhere() -> None:
    peer = Peer(7, {"pulsar": "b:6650", "kafka": "b:9092", "http": "b:8080"})
    table = OwnershipTable(peer)
    table.topics[TOPIC.full] = table.groups["g"] = table.transactions["x"] = peer
    requested: Ownership = table
    assert await requested.topic(TOPIC) is peer
    assert await requested.topic(TopicName.parse("u")) is None
    assert (await requested.group("g"), await requested.group("h")) == (peer, None)
    assert (await requested.transaction("x"), await requested.transaction("y")) == (peer, None)
    assert list(requested.peers()) == [peer]


def test_brokers_call_each_other_by_their_http_address() -> None:
    assert Peer(1, {"http": "b:8080", "https": "b:8443"}).broker_id == "b:8080"
    assert Peer(1, {"https": "b:8443"}).broker_id == "b:8443"
    assert Peer(1).broker_id == ""
