"""Introductions, signs of life, and finding topics."""

from core.names import TopicName
from wire.pulsar import commands_pb2 as pb
from wire.pulsar.session.lookup import topics_hash
from wire.pulsar.session.session import FrontOptions
from wire.pulsar.session.tests.conftest import Player, Stage
from wire.pulsar.tests import peer


async def test_introductions(stage: Stage) -> None:
    client = Player(stage.broker, FrontOptions(server_version="M-1"), "1.1.1.1:1")
    heard = await client.says_one(peer.connect(protocol_version=12))
    assert (heard.kind, heard.body.server_version) == ("CONNECTED", "M-1")
    assert heard.body.protocol_version == 12, "the lower of both"
    assert heard.body.max_message_size == 5 * 1024 * 1024


async def test_a_quiet_peer_is_asked_and_a_stranger_is_not(stage: Stage) -> None:
    client = await stage.player()
    client.session.quiet()
    assert [each.kind for each in await client.hears()] == ["PING"]
    assert await client.says(peer.pong()) == []
    assert [each.kind for each in await client.says(peer.ping())] == ["PONG"]
    stranger = Player(stage.broker, FrontOptions(), "1.1.1.1:1")
    stranger.session.quiet()
    assert stranger.line.ending is not None


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
    assert heard.kind == "ERROR"


def test_the_hash_does_not_depend_on_the_order() -> None:
    assert topics_hash(["a", "b"]) == topics_hash(["b", "a"]) != topics_hash(["a"])
