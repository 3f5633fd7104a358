"""Introductions and signs of life."""

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
