"""Wills need the right that a PUBLISH needs: at CONNECT, and when they are published. Nothing is
created for who has no right.
"""

from __future__ import annotations

import pytest

from magnetar.core.security.acls import EVERYBODY, EVERYTHING, Acl, Acls, Pattern
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.judge import Judge
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.rights.acl_file import AclFile
from magnetar.wire.mqtt.session.tests.test_authentication import Plain
from magnetar.wire.mqtt.session.tests.test_read_rights import guarded, person
from magnetar.wire.mqtt.tests.peer import V3, V5, publish, subscribe

LOG = "mqtt"


def deny(stage: Stage, *names: str) -> None:
    """Nobody may write these topics."""
    judge = Judge(allow_if_unmentioned=True)
    topic = ResourceType.TOPIC, Pattern.LITERAL
    acls = [Acl(*topic, name, EVERYBODY, EVERYTHING, Action.WRITE, False) for name in names]
    read = [Acl(*topic, name, EVERYBODY, EVERYTHING, Action.READ, True) for name in names]
    judge.acls = Acls([*acls, *read])
    stage.broker.access.judge = judge


@pytest.mark.parametrize(("version", "reason"), [(V3, 5), (V5, 0x87)])
async def test_a_will_that_its_client_may_not_publish(
    stage: Stage, version: int, reason: int
) -> None:
    deny(stage, LOG)
    client, (connack,) = await stage.connects(version=version, will=("w", b"bye", 1, True))
    assert connack.reasons == (reason,)
    assert client.line.ending is not None
    await client.is_cut()
    assert not stage.broker.topics, "and nothing is created for it"
    await stage.connected(version=version)


@pytest.mark.parametrize("topic", ["w", "persistent://secret/vault/new"])
async def test_nothing_is_created_for_who_may_not_use_it(stage: Stage, topic: str) -> None:
    stage.broker.access.judge = Judge()
    client = await stage.connected(version=V5)
    (puback,) = await client.says(publish(topic, b"x", qos=1, number=1, version=V5))
    for filter in (topic, f"$share/group/{topic}"):
        (suback,) = await client.says(subscribe((filter, 1), number=2, version=V5))
        assert (puback.reasons, suback.reasons) == ((0x87,), (0x87,))
    assert not stage.broker.topics
    assert not await stage.broker.metadata.children("/managed-ledgers")


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_will_that_its_client_may_publish_no_longer(
    caplog: pytest.LogCaptureFixture, restarts: bool
) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.connected("d", will=("w", b"bye", 1, True))
        if not restarts:
            watcher = await stage.subscribed("watcher", ("w", 0))
            deny(stage, LOG)
            await client.is_cut()
            assert await watcher.receive() == []
    if restarts:
        async with serving(stores) as stage:
            watcher = await stage.subscribed("watcher", ("w", 0))
            deny(stage, LOG)
            await stage.forward(1)
            assert await watcher.receive() == []
    assert stage.services.retained.count == 0
    (line,) = [line for line in caplog.messages if "will" in line]
    assert line == (
        "the will of 'd' is not published: an anonymous client may not write topic "
        f"persistent://public/default/{LOG}"
    )


async def test_a_will_is_published_in_the_name_of_its_client(stage: Stage) -> None:
    """Also by a server that has only its record."""
    stage.broker.access.mechanisms["PLAIN"] = Plain
    await stage.connected("d", will=("w", b"bye", 1, False), username="ali", password=b"sesame")
    record = await stage.services.sessions.records.read("d")
    assert record is not None
    assert record.will is not None
    assert record.will.principal == "ali"


@pytest.mark.parametrize(("name", "published"), [("ann", []), ("", [b"bye"])])
async def test_a_will_of_who_has_not_authenticated_has_the_rules_of_those(
    name: str, published: list[bytes]
) -> None:
    """Its client is gone when it is published, and the rules may be others."""
    file = AclFile("topic write w\nuser ann\ntopic write w")
    async with guarded(acl=file) as stage:
        who = {"username": name, "password": b"sesame"} if name else {}
        client = await stage.connected("d", version=V5, will=("w", b"bye", 1, False), **who)
        root = await person(stage, "root", "w")
        file.take(b"topic write w")
        await client.is_cut()
        assert [one.payload for one in await root.receive()] == published
