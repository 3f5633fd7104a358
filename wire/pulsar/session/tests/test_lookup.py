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
    heard = await client.says_one(peer.lookup(5, "t"))
    assert heard.kind == "LOOKUP_RESPONSE"
    assert heard.body.HasField("response")
    assert heard.body.authoritative
    heard = await client.says_one(peer.lookup(6, "nobody/nowhere/t"))
    assert (heard.kind, heard.body.error) == ("LOOKUP_RESPONSE", pb.TopicNotFound)
    heard = await client.says_one(peer.lookup(7, "t", advertised_listener_name="test"))
    assert heard.body.message == "the broker do not have test listener"


async def test_a_peers_topic_is_looked_up_there() -> None:
    secure, mute = Peer(1, {"pulsar": "b:1", "pulsar_tls": "b:2"}), Peer(2, {"kafka": "c:1"})
    table = OwnershipTable(secure, mute)
    table.topics[TopicName.parse("theirs").full] = secure
    table.topics[TopicName.parse("mute").full] = mute
    stores = Stores()
    async with running(stores, table) as broker:
        client = await Stage(stores, broker).player()
        heard = await client.says_one(peer.lookup(5, "theirs"))
        assert heard.body.response == pb.CommandLookupTopicResponse.REDIRECT
        assert heard.body.broker_service_url == "pulsar://b:1"
        assert heard.body.broker_service_url_tls == "pulsar+ssl://b:2"
        assert heard.body.authoritative
        heard = await client.says_one(peer.lookup(6, "mute"))
        assert heard.body.error == pb.ServiceNotReady
        heard = await client.says_one(peer.producer(1, 7, "theirs"))
        assert (heard.kind, heard.body.error) == ("ERROR", pb.ServiceNotReady)
        heard = await client.says_one(peer.subscribe(8, 1, "theirs", "s"))
        assert (heard.kind, heard.body.error) == ("ERROR", pb.ServiceNotReady)
        assert broker.topics == {}


async def test_partitions(stage: Stage) -> None:
    client = await stage.player()
    heard = await client.says_one(peer.partitioned_metadata(5, "t"))
    assert heard.kind == "PARTITIONED_METADATA_RESPONSE"
    assert heard.body.HasField("partitions")
    assert heard.body.partitions == 0
    await stage.broker.catalog.create_partitioned(TopicName.parse("p"), 3)
    heard = await client.says_one(peer.partitioned_metadata(6, "p"))
    assert heard.body.partitions == 3
    heard = await client.says_one(peer.partitioned_metadata(7, "nobody/nowhere/t"))
    assert heard.body.error == pb.TopicNotFound


async def test_topics_of_a_namespace(stage: Stage) -> None:
    client = await stage.player()
    names = ["non-persistent://public/default/v", "persistent://public/default/t"]
    for name in names:
        await stage.broker.topic(TopicName.parse(name))
    everything = pb.CommandGetTopicsOfNamespace.ALL
    heard = await client.says_one(peer.topics_of_namespace(5, "public/default", mode=everything))
    assert list(heard.body.topics) == names
    heard = await client.says_one(peer.topics_of_namespace(6, "public/default"))
    assert list(heard.body.topics) == names[1:]
    digest = heard.body.topics_hash
    heard = await client.says_one(peer.topics_of_namespace(7, "public/default", topics_hash=digest))
    assert (list(heard.body.topics), heard.body.changed) == ([], False)
    heard = await client.says_one(peer.topics_of_namespace(8, "nobody/nowhere"))
    # a client that waits for topics of a pattern may wait for their namespace as well
    assert (heard.kind, list(heard.body.topics)) == ("GET_TOPICS_OF_NAMESPACE_RESPONSE", [])


def test_the_hash_does_not_depend_on_the_order() -> None:
    assert topics_hash(["a", "b"]) == topics_hash(["b", "a"]) != topics_hash(["a"])
