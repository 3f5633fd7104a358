"""WATCH_TOPIC_LIST, as playbooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.session.lookup import topics_hash
from magnetar.wire.pulsar.session.watches import connection
from magnetar.wire.pulsar.session.watches.connection import without_domain
from magnetar.wire.pulsar.tests import peer

PREFIX = "persistent://public/default/"


def watch(request_id: int, watcher_id: int, pattern: str, **fields: Any) -> bytes:
    namespace = fields.pop("namespace", "public/default")
    return peer.watch_topics(request_id, watcher_id, namespace, pattern, **fields)


def close(request_id: int, watcher_id: int) -> bytes:
    message = pb.CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id)
    return peer.frame("WATCH_TOPIC_LIST_CLOSE", message)


async def created(stage: Stage, *names: str) -> None:
    for name in names:
        await stage.broker.topic(TopicName.parse(name))


async def hears(client: Player) -> list[peer.ReceivedFrame]:
    """What a client receives after the next round of changes."""
    return [*await client.receive(), *await client.receive(), *await client.receive()]


async def test_the_feature_is_advertised(stage: Stage) -> None:
    (received,) = await stage.stranger().says(peer.connect())
    assert received.body.feature_flags.supports_topic_watchers


async def test_a_list_and_its_changes(stage: Stage, autojump_clock: object) -> None:
    await created(stage, "a1", "b1")
    client = await stage.player()
    received = await client.says_one(watch(5, 7, f"{PREFIX}a.*"))
    assert received.kind == "WATCH_TOPIC_LIST_SUCCESS"
    assert (received.body.request_id, received.body.watcher_id) == (5, 7)
    assert list(received.body.topic) == [f"{PREFIX}a1"]
    assert received.body.topics_hash == topics_hash([f"{PREFIX}a1"])
    await created(stage, "a2", "b2")
    (told,) = await hears(client)
    assert (told.kind, told.body.watcher_id) == ("WATCH_TOPIC_UPDATE", 7)
    assert (list(told.body.new_topics), list(told.body.deleted_topics)) == ([f"{PREFIX}a2"], [])
    assert told.body.topics_hash == topics_hash([f"{PREFIX}a1", f"{PREFIX}a2"])
    await stage.broker.delete(TopicName.parse("a1"), force=True)
    (told,) = await hears(client)
    assert (list(told.body.new_topics), list(told.body.deleted_topics)) == ([], [f"{PREFIX}a1"])


async def test_a_client_that_knows_the_list_gets_no_names(stage: Stage) -> None:
    await created(stage, "a1")
    client = await stage.player()
    known = topics_hash([f"{PREFIX}a1"])
    received = await client.says_one(watch(5, 7, "public/default/.*", topics_hash=known))
    assert (list(received.body.topic), received.body.topics_hash) == ([], known)
    received = await client.says_one(watch(6, 7, "public/default/.*", topics_hash="other"))
    assert list(received.body.topic) == [f"{PREFIX}a1"]
    assert stage.broker.topic_watches.watchers == 1


async def test_it_ends(stage: Stage) -> None:
    client, other = await stage.player(), await stage.player()
    await client.says(watch(5, 7, ".*"), watch(6, 8, "x"))
    await other.says(watch(5, 7, ".*"))
    assert stage.broker.topic_watches.watchers == 3
    assert kinds(await client.says(close(9, 7), close(10, 99))) == ["SUCCESS", "SUCCESS"]
    assert stage.broker.topic_watches.watchers == 2
    client.session.closed("test")
    other.session.closed("test")
    assert (stage.broker.topic_watches.watchers, stage.broker.topic_watches.size) == (0, 0)
    await created(stage, "a")
    assert await hears(client) == []


@pytest.mark.parametrize("pattern", ["(", "(?i)x", "x" * 251, "(?<=a)b"])
async def test_what_is_refused_makes_java_poll(stage: Stage, pattern: str) -> None:
    client = await stage.player()
    received = await client.says_one(watch(5, 7, pattern))
    assert (received.kind, received.body.error) == ("ERROR", pb.NotAllowedError)
    assert received.body.request_id == 5


async def test_a_connection_watches_so_many(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WATCHERS_MAX", 1)
    client = await stage.player()
    received = await client.says(watch(5, 7, "a"), watch(6, 8, "b"))
    assert kinds(received) == ["WATCH_TOPIC_LIST_SUCCESS", "ERROR"]


async def test_a_connection_watches_so_many_patterns(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATTERNS_MAX", 1)
    client = await stage.player()
    received = await client.says(watch(5, 7, "a"), watch(6, 8, "a"))
    assert kinds(received) == ["WATCH_TOPIC_LIST_SUCCESS"] * 2
    assert kinds(await client.says(watch(7, 9, "b"))) == ["ERROR"]
    received = await client.says(close(8, 7), close(9, 8), watch(10, 9, "b"))
    assert kinds(received)[-1] == "WATCH_TOPIC_LIST_SUCCESS"


async def test_a_right_that_is_taken(guarded_stage: Stage, autojump_clock: object) -> None:
    await guarded_stage.permit(somebody="consume")
    client = await guarded_stage.player(name="somebody")
    received = await client.says_one(watch(5, 7, ".*"))
    assert received.kind == "WATCH_TOPIC_LIST_SUCCESS"
    await guarded_stage.permit()
    client.session.rights_changed()
    assert guarded_stage.broker.topic_watches.watchers == 0
    await created(guarded_stage, "a")
    assert await hears(client) == []


async def test_one_that_is_closed_before_its_turn(stage: Stage) -> None:
    client = await stage.player()
    assert kinds(await client.says(watch(5, 7, ".*"), close(6, 7))) == ["SUCCESS"]
    assert stage.broker.topic_watches.watchers == 0
    received = await client.says(watch(7, 7, ".*"), close(8, 7), watch(9, 7, ".*"))
    assert kinds(received) == ["SUCCESS", "WATCH_TOPIC_LIST_SUCCESS"]
    assert received[-1].body.request_id == 9
    assert (stage.broker.topic_watches.watchers, len(client.session.watches._coming)) == (1, 0)


@asynccontextmanager
async def nobody_is_listed(stage: Stage) -> AsyncIterator[None]:
    """New patterns of the namespace wait for their list."""
    other = await stage.player(**({"name": "root"} if stage.broker.access.judge else {}))
    await other.says_one(watch(1, 1, "x"))
    (watched,) = stage.broker.topic_watches._namespaces.values()
    async with watched.lock:
        yield
    other.session.closed("test")


async def test_one_that_is_closed_while_its_list_is_made(stage: Stage) -> None:
    client = await stage.player()
    async with nobody_is_listed(stage):
        assert await client.says(watch(5, 7, ".*")) == []
        assert kinds(await client.says(close(6, 7))) == ["SUCCESS"]
    assert await client.receive() == []
    assert (stage.broker.topic_watches.watchers, stage.broker.topic_watches.size) == (0, 0)


async def test_a_client_that_leaves_while_its_list_is_made(stage: Stage) -> None:
    client = await stage.player()
    async with nobody_is_listed(stage):
        assert await client.says(watch(5, 7, ".*")) == []
        client.session.closed("test")
    await client.receive()
    assert (stage.broker.topic_watches.watchers, stage.broker.topic_watches.size) == (0, 0)


async def test_a_right_that_is_taken_while_the_list_is_made(guarded_stage: Stage) -> None:
    await guarded_stage.permit(somebody="consume")
    client = await guarded_stage.player(name="somebody")
    async with nobody_is_listed(guarded_stage):
        assert await client.says(watch(5, 7, ".*")) == []
        await guarded_stage.permit()
        client.session.rights_changed()
    (received,) = await client.receive()
    assert (received.kind, received.body.error) == ("ERROR", pb.AuthorizationError)
    assert guarded_stage.broker.topic_watches.watchers == 0


@pytest.mark.parametrize("closes", [True, False])
async def test_one_that_ends_while_its_client_receives_nothing(
    guarded_stage: Stage, *, closes: bool
) -> None:
    await guarded_stage.permit(somebody="consume")
    client = await guarded_stage.player(name="somebody")
    client.line.congested = True
    assert await client.says(watch(5, 7, ".*")) == []
    if closes:
        assert kinds(await client.says(close(6, 7))) == ["SUCCESS"]
    else:
        await guarded_stage.permit()
        client.session.rights_changed()
    assert guarded_stage.broker.topic_watches.watchers == 0
    client.line.congested = False
    client.session.relieved()
    assert kinds(await client.receive()) == ([] if closes else ["ERROR"])


def test_patterns_as_clients_write_them() -> None:
    assert without_domain("persistent://public/default/x.*") == "public/default/x.*"
    assert without_domain("^non-persistent://a/b/x$") == "^a/b/x$"
    assert without_domain("public/default/x") == "public/default/x"
