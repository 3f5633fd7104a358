"""One client: its answers, its signs of life, its end."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Invalid, NotAllowed
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.client import REASSURE_SECONDS, PulsarClient
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.tests import peer


def client_of(player: Player) -> PulsarClient:
    return player.session.client


async def test_a_refusal_is_of_the_type_that_the_request_asks_for(stage: Stage) -> None:
    player = await stage.player()
    client_of(player).refuse(events.GetLastMessageId(7, 1), NotAllowed("no"))
    (received,) = await player.receive()
    assert (received.kind, received.body.request_id) == ("ERROR", 7)
    assert player.line.ending is None


async def test_what_cannot_be_answered_ends_the_connection_if_it_is_wrong(stage: Stage) -> None:
    player = await stage.player()
    client_of(player).refuse(events.Flow(1, 0), NotAllowed("not now"))
    assert player.line.ending is None
    client_of(player).refuse(events.Flow(1, 0), Invalid("no permits"))
    assert player.line.ending == "no permits"
    assert await player.receive() == []


async def test_a_client_is_reassured_once_in_a_while(stage: Stage) -> None:
    player = await stage.player()
    now = stage.broker.clock.monotonic()
    for later in (REASSURE_SECONDS - 0.1, REASSURE_SECONDS, REASSURE_SECONDS + 1):
        assert client_of(player).reassure(now + later)
    assert kinds(await player.receive()) == ["PONG"]
    player.session.closed("gone")
    assert not client_of(player).reassure(now + 100)


async def test_a_pong_wakes_who_waits_for_it_and_the_next_is_another(stage: Stage) -> None:
    player = await stage.player()
    first = client_of(player).pong
    await player.says(peer.pong())
    assert first.is_set()
    assert not client_of(player).pong.is_set()


@pytest.mark.parametrize("large", [False, True])
async def test_nothing_is_packed_after_the_end(stage: Stage, large: bool) -> None:
    player = await stage.player()
    waiting = client_of(player).writable
    player.session.closed("gone")
    assert waiting.is_set(), "nobody waits for a client that has gone"
    (client_of(player).reply_large if large else client_of(player).reply)(b"x")
    assert player.wire.take_outgoing() == []


async def test_an_end_detaches_everything(stage: Stage) -> None:
    player = await stage.player()
    await player.says(peer.producer(1, 3, "t"), peer.subscribe(2, 4, "t", "s"))
    assert len(player.session.producers) == len(player.session.consumers.attached) == 1
    client_of(player).end("silent")
    assert player.line.ending == "silent"
    assert len(player.session.producers) == len(player.session.consumers.attached) == 0
