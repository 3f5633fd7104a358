"""A client that does not receive: it is told later, in fewer words, or not at all."""

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.lookup import topics_hash
from magnetar.wire.pulsar.session.watches import watcher
from magnetar.wire.pulsar.session.watches.tests.test_connection import (
    PREFIX,
    close,
    created,
    hears,
    watch,
)


async def test_a_slow_client_is_told_later(stage: Stage, autojump_clock: object) -> None:
    client = await stage.player()
    await client.says(watch(5, 7, ".*"))
    client.line.congested = True
    await created(stage, "a", "b")
    assert await hears(client) == []
    await stage.broker.delete(TopicName.parse("a"), force=True)
    assert await hears(client) == []
    client.line.congested = False
    client.session.relieved()
    (told,) = await hears(client)
    assert (list(told.body.new_topics), list(told.body.deleted_topics)) == ([f"{PREFIX}b"], [])
    assert told.body.topics_hash == topics_hash([f"{PREFIX}b"])


async def test_a_client_that_does_not_receive_is_disconnected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(watcher, "HELD_MAX", 2)
    client = await stage.player()
    await client.says(watch(5, 7, ".*"))
    client.line.congested = True
    await created(stage, "a", "b", "c")
    await hears(client)
    assert client.line.ending is not None


async def test_what_all_watchers_of_a_connection_hold_counts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(watcher, "HELD_MAX", 5)
    client = await stage.player()
    await client.says(*[watch(number, number, ".*") for number in (1, 2, 3)])
    held = client.session.watches._held
    client.line.congested = True
    await created(stage, "a")
    await hears(client)
    assert (held.count, client.line.ending) == (3, None)
    await client.says(close(9, 3))
    assert held.count == 2
    client.line.congested = False
    client.session.relieved()
    assert held.count == 0
    client.line.congested = True
    await client.says(watch(3, 3, ".*"))  # waits for its client, and has no answer
    await created(stage, "b", "c")
    await hears(client)
    assert (held.count, client.line.ending) == (4, None)
    await created(stage, "d")
    await hears(client)
    assert client.line.ending is not None


async def test_nothing_is_collected_for_a_client_that_is_being_disconnected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    """It may have a thousand watchers, and is there until it has received what was sent before."""
    monkeypatch.setattr(watcher, "HELD_MAX", 2)
    client = await stage.player()
    await client.says(*[watch(number, number, ".*") for number in range(10)])
    client.line.congested = True
    await created(stage, "a", "b", "c")
    await hears(client)
    assert client.line.ending is not None
    before = client.session.watches._held.count
    assert before < 10
    await created(stage, "d")
    await hears(client)
    assert client.session.watches._held.count == before


async def test_many_names_come_in_several_updates(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(watcher, "NAMES_PER_UPDATE", 2)
    client = await stage.player()
    await client.says(watch(5, 7, ".*"))
    client.line.congested = True
    await created(stage, *"abcde")
    await hears(client)
    client.line.congested = False
    client.session.relieved()
    told = await hears(client)
    assert [len(one.body.new_topics) for one in told] == [2, 2, 1]
    assert len({one.body.topics_hash for one in told}) == 1
