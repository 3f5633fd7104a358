"""A mistake of ours costs the session, an error of the broker a reply."""

import pytest

from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.session import AT_ONCE, HANDLERS
from magnetar.wire.pulsar.tests import peer


def test_every_event_has_a_handler() -> None:
    assert set(HANDLERS) == set(events.ALL)
    assert events.Lookup not in AT_ONCE
    assert events.Sends in AT_ONCE


async def test_a_mistake_of_ours_costs_the_session(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await stage.player()

    async def fail(_namespace: object) -> bool:
        raise AssertionError("a mistake")

    monkeypatch.setattr(stage.broker.catalog, "has_namespace", fail)
    assert await client.says(peer.lookup(5, "t")) == []
    assert client.line.ending is not None
    assert "a mistake" in caplog.text
    other = await stage.player()
    assert (await other.says_one(peer.ping())).kind == "PONG"


async def test_nothing_is_said_after_the_end(stage: Stage) -> None:
    client = await stage.player()
    client.session.closed("gone")
    client.session.client.reply(b"x")
    assert client.wire.take_outgoing() == []
