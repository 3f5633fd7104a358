"""Finding topics, as playbooks."""

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.lookup import topics_hash
from magnetar.wire.pulsar.tests import peer


async def test_lookup(stage: Stage) -> None:
    client = await stage.player()
    received = await client.says_one(peer.lookup(5, "t"))
    assert received.kind == "LOOKUP_RESPONSE"
    assert received.body.HasField("response")
    assert received.body.authoritative
    received = await client.says_one(peer.lookup(6, "nobody/nowhere/t"))
    assert (received.kind, received.body.error) == ("LOOKUP_RESPONSE", pb.TopicNotFound)
    received = await client.says_one(peer.lookup(7, "t", advertised_listener_name="test"))
    assert received.body.message == "the broker do not have test listener"


async def test_a_peers_topic_is_looked_up_there() -> None:
    secure, mute = Peer(1, {"pulsar": "b:1", "pulsar_tls": "b:2"}), Peer(2, {"kafka": "c:1"})
    table = OwnershipTable(secure, mute)
    table.topics[TopicName.parse("theirs").full] = secure
    table.topics[TopicName.parse("mute").full] = mute
    stores = Stores()
    async with running(stores, table) as broker:
        client = await Stage(stores, broker).player()
        received = await client.says_one(peer.lookup(5, "theirs"))
        assert received.body.response == pb.CommandLookupTopicResponse.REDIRECT
        assert received.body.broker_service_url == "pulsar://b:1"
        assert received.body.broker_service_url_tls == "pulsar+ssl://b:2"
        assert received.body.authoritative
        received = await client.says_one(peer.lookup(6, "mute"))
        assert received.body.error == pb.ServiceNotReady
        received = await client.says_one(peer.producer(1, 7, "theirs"))
        assert (received.kind, received.body.error) == ("ERROR", pb.ServiceNotReady)
        received = await client.says_one(peer.subscribe(8, 1, "theirs", "s"))
        assert (received.kind, received.body.error) == ("ERROR", pb.ServiceNotReady)
        assert broker.topics == {}


async def test_partitions(stage: Stage) -> None:
    client = await stage.player()
    received = await client.says_one(peer.partitioned_metadata(5, "t"))
    assert received.kind == "PARTITIONED_METADATA_RESPONSE"
    assert received.body.HasField("partitions")
    assert received.body.partitions == 0
    await stage.broker.catalog.create_partitioned(TopicName.parse("p"), 3)
    received = await client.says_one(peer.partitioned_metadata(6, "p"))
    assert received.body.partitions == 3
    received = await client.says_one(peer.partitioned_metadata(7, "nobody/nowhere/t"))
    assert received.body.error == pb.TopicNotFound


async def test_topics_of_a_namespace(stage: Stage) -> None:
    client = await stage.player()
    names = ["non-persistent://public/default/v", "persistent://public/default/t"]
    for name in names:
        await stage.broker.topic(TopicName.parse(name))
    everything = pb.CommandGetTopicsOfNamespace.ALL
    received = await client.says_one(peer.topics_of_namespace(5, "public/default", mode=everything))
    assert list(received.body.topics) == names
    received = await client.says_one(peer.topics_of_namespace(6, "public/default"))
    assert list(received.body.topics) == names[1:]
    digest = received.body.topics_hash
    received = await client.says_one(
        peer.topics_of_namespace(7, "public/default", topics_hash=digest)
    )
    assert (list(received.body.topics), received.body.changed) == ([], False)
    received = await client.says_one(peer.topics_of_namespace(8, "nobody/nowhere"))
    # a client that waits for topics of a pattern may wait for their namespace as well
    assert (received.kind, list(received.body.topics)) == ("GET_TOPICS_OF_NAMESPACE_RESPONSE", [])


def test_the_hash_does_not_depend_on_the_order() -> None:
    assert topics_hash(["a", "b"]) == topics_hash(["b", "a"]) != topics_hash(["a"])
