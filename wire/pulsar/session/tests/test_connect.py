"""Introductions and signs of life."""

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.tests import peer


async def test_introductions(stage: Stage) -> None:
    client = stage.stranger(server_version="M-1")
    received = await client.says_one(peer.connect(protocol_version=12))
    assert (received.kind, received.body.server_version) == ("CONNECTED", "M-1")
    assert received.body.protocol_version == 12, "the lower of both"
    assert received.body.max_message_size == 16 * 1024 * 1024


async def test_whoever_comes_through_a_proxy_is_welcome(stage: Stage) -> None:
    """We tell clients to stay where they dialled: then they name us as the broker behind it."""
    client = stage.stranger()
    received = await client.says_one(peer.connect(proxy_to_broker_url="localhost:6650"))
    assert received.kind == "CONNECTED"


async def test_a_connection_too_many_is_refused_in_the_protocols_words(stage: Stage) -> None:
    client = stage.stranger()
    client.line.refusal = "the server has its maximum of 1 connections"
    received = await client.says_one(peer.connect())
    assert (received.kind, received.body.request_id) == ("ERROR", 2**64 - 1)
    assert received.body.error == pb.NotAllowedError
    assert received.body.message == client.line.ending == client.line.refusal


async def test_a_quiet_peer_is_asked_and_a_stranger_is_not(stage: Stage) -> None:
    client = await stage.player()
    client.session.quiet()
    assert [each.kind for each in await client.receive()] == ["PING"]
    assert await client.says(peer.pong()) == []
    assert [each.kind for each in await client.says(peer.ping())] == ["PONG"]
    stranger = stage.stranger()
    stranger.session.quiet()
    assert stranger.line.ending is not None
