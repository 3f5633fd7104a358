"""Nobody reads what he may not read: also of topics that come later, in groups, when rules change,
and of retained messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from magnetar.core.broker import administration
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.conversation import AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge
from magnetar.core.security.permissions import NamespaceRights
from magnetar.core.testing.bench import stored
from magnetar.core.testing.broker import Stores
from magnetar.core.testing.entries import entry
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.rights.acl_file import AclFile
from magnetar.wire.mqtt.tests.peer import V5, Received, publish, subscribe

OLD = (MappingRule("old/#", "{each}"),)
LASTS = b"\x11\xff\xff\xff\xff"
REFUSED = 0x87
GROUP = "$share/g/old/#"


class Said:
    """Everybody is who he says he is."""

    refusal = ""

    def __init__(self, _peer: AuthPeer) -> None:
        self.identity: Identity | None = None

    async def respond(self, said: bytes) -> bytes:
        _, name, password = said.decode().split("\0")
        if password != "sesame":
            raise Unauthenticated("who is that?")
        self.identity = Identity(name, method="PLAIN")
        return b""


@asynccontextmanager
async def guarded(stores: Stores | None = None, **options: Any) -> AsyncIterator[Stage]:
    """Where root may do everything, ann may read the namespace, and eve has no right."""
    async with serving(stores, **options) as stage:
        access = stage.broker.access
        access.mechanisms["PLAIN"] = Said
        access.judge = Judge(superusers=("root",))
        granted = AuthPolicies(namespace_auth={"ann": ["consume"]})
        access.judge.permissions.namespaces["public/default"] = NamespaceRights(granted)
        yield stage


async def person(
    stage: Stage, name: str, *filters: str, lasts: bool = False, qos: int = 1
) -> Client:
    """A client of somebody, named like him, who is granted these filters."""
    client, (connack, *_) = await comes(stage, name, clean=not lasts, lasts=lasts)
    assert connack.reasons == (0,)
    if filters:
        assert await asks(client, *filters, qos=qos) == (qos,) * len(filters)
    return client


async def comes(
    stage: Stage, name: str, *, clean: bool = False, lasts: bool = True
) -> tuple[Client, list[Received]]:
    return await stage.connects(
        name,
        version=V5,
        clean=clean,
        properties=LASTS if lasts else b"",
        username=name,
        password=b"sesame",
    )


async def asks(client: Client, *filters: str, qos: int = 1) -> Sequence[int]:
    found = await client.says(subscribe(*((one, qos) for one in filters), version=V5))
    return next(one.reasons for one in found if one.kind == "SUBACK")


async def tells(root: Client, topic: str, payload: bytes, **options: Any) -> None:
    (puback, *_) = await root.says(publish(topic, payload, qos=1, number=1, version=V5, **options))
    assert puback.reasons in ((), (0,), (0x10,))


def payloads(got: Sequence[Received]) -> list[bytes]:
    return [one.payload for one in got if one.kind == "PUBLISH"]


def is_out(client: Client, got: Sequence[Received]) -> bool:
    """Whether all that a client heard is that it is not authorized, and its connection ends."""
    return [(one.kind, one.reasons) for one in got] == [
        ("DISCONNECT", (REFUSED,))
    ] and client.line.ending is not None


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize(
    ("filter", "topic"),
    [
        (GROUP, "old/secret"),
        ("$share/g/persistent://public/default/+", "persistent://public/default/secret"),
    ],
)
async def test_a_group_reads_new_topics_for_those_who_may(
    filter: str, topic: str, qos: int
) -> None:
    async with guarded(rules=OLD) as stage:
        eve = await person(stage, "eve", filter, qos=qos)
        ann = await person(stage, "ann", filter, qos=qos)
        root = await person(stage, "root")
        for number in range(4):
            await tells(root, topic, b"%d" % number)
        assert is_out(eve, await eve.receive())
        assert payloads(await ann.receive()) == [b"0", b"1", b"2", b"3"]
        assert [one.client_id for one in groups_members(stage, filter)] == [b"ann"]
        await eve.is_cut()
        again = await person(stage, "eve")
        assert await asks(again, filter) == (REFUSED,)
        await tells(root, topic, b"4")
        assert payloads(await ann.receive()) == [b"4"]


def groups_members(stage: Stage, name: str) -> list[Any]:
    group = stage.services.groups.find(name)
    assert group is not None
    return list(group.members)


async def test_a_group_without_members_keeps_what_it_may_not_send() -> None:
    """All members have to leave; whoever may read comes later, and gets all."""
    async with guarded(rules=OLD) as stage:
        eve = await person(stage, "eve", GROUP, lasts=True)
        root = await person(stage, "root")
        await tells(root, "old/secret", b"1")
        assert is_out(eve, await eve.receive())
        await eve.is_cut()
        back, got = await comes(stage, "eve")
        assert (got, back.line.ending is None) == ([], False)
        await back.is_cut()
        ann = await person(stage, "ann")
        got = await ann.says(subscribe((GROUP, 1), version=V5))
        assert payloads(got) == [b"1"]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_member_that_sleeps_is_looked_at_when_it_comes_back(restarts: bool) -> None:
    stores = Stores()
    async with guarded(stores, rules=OLD) as stage:
        await (await person(stage, "eve", GROUP, lasts=True)).leaves()
        ann = await person(stage, "ann", GROUP, lasts=True)
        root = await person(stage, "root")
        await tells(root, "old/secret", b"1")
        assert payloads(await ann.receive()) == [b"1"]
        if not restarts:
            back, got = await comes(stage, "eve")
            assert (got, back.line.ending is None) == ([], False)
            await tells(root, "old/secret", b"2")
            assert payloads(await ann.receive()) == [b"2"]
    if restarts:
        async with guarded(stores, rules=OLD) as stage:
            back, got = await comes(stage, "eve")
            assert (got, back.line.ending is None) == ([], False)


async def test_a_topic_that_another_protocol_makes() -> None:
    async with guarded(rules=OLD) as stage:
        eve = await person(stage, "eve", GROUP)
        ann = await person(stage, "ann", GROUP)
        topic = (await stage.broker.topic(TopicName.parse("public/default/old%2Fx"))).stored
        assert topic is not None
        await stored(topic.ledger, entry(b"secret"))
        assert is_out(eve, await eve.receive())
        assert payloads(await ann.receive()) == [b"secret"]


async def test_another_member_makes_a_group_read_more() -> None:
    """The group learns of a topic by a SUBSCRIBE."""
    stores = Stores()
    async with guarded(stores, rules=OLD) as stage:
        eve = await person(stage, "eve", GROUP)
        watches, stores.metadata._watches = stores.metadata._watches, []
        topic = (await stage.broker.topic(TopicName.parse("public/default/old%2Fx"))).stored
        assert topic is not None
        ann = await person(stage, "ann", GROUP)
        stores.metadata._watches = watches
        await stored(topic.ledger, entry(b"secret"))
        assert is_out(eve, await eve.receive())
        assert payloads(await ann.receive()) == [b"secret"]


async def test_rules_that_change_bring_a_group_to_what_a_member_may_not_read() -> None:
    async with guarded(rules=(MappingRule("a/#", "ta"),)) as stage:
        judge = stage.broker.access.judge
        assert judge is not None
        granted = AuthPolicies(
            namespace_auth={"ann": ["consume"]},
            topic_auth={"persistent://public/default/ta": {"eve": ["consume"]}},
        )
        judge.permissions.namespaces["public/default"] = NamespaceRights(granted)
        judge.changed()
        eve = await person(stage, "eve", "$share/g/a/#")
        ann = await person(stage, "ann", "$share/g/a/#")
        await stage.services.rule_changes.change((MappingRule("a/#", "tb"),), None)
        root = await person(stage, "root")
        await tells(root, "a/x", b"1")
        await tells(root, "a/x", b"2")
        assert is_out(eve, await eve.receive())
        assert payloads(await ann.receive()) == [b"1", b"2"]


async def test_wildcards_are_about_the_namespace_of_the_listener() -> None:
    """A rule that grants `#` says nothing of the topics of other tenants, which come later."""
    async with guarded(acl=AclFile("user eve\ntopic read #")) as stage:
        catalog, namespace = stage.broker.catalog, NamespaceName.parse("acme/devices")
        await catalog.put_tenant("acme", Tenant(allowed_clusters=["standalone"]), create=True)
        await catalog.create_namespace(namespace, NamespacePolicies())
        eve = await person(stage, "eve", "#", "$share/g/#")
        root = await person(stage, "root")
        await tells(root, "persistent://acme/devices/secret", b"1")
        assert await eve.receive() == []
        await tells(root, "own", b"2")
        assert payloads(await eve.receive()) == [b"2", b"2"]


# -- retained messages ----------------------------------------------------------------------------


async def replayed(client: Client, filter: str) -> list[bytes]:
    """What a granted SUBSCRIBE brings."""
    got = await client.says(subscribe((filter, 1), version=V5))
    assert [one.reasons for one in got if one.kind == "SUBACK"] == [(1,)]
    return payloads(got)


async def test_a_retained_message_outlives_its_topic_and_is_not_for_strangers() -> None:
    """The stored topic is deleted, so a filter with wildcards finds nothing to be checked."""
    async with guarded() as stage:
        root = await person(stage, "root")
        gone = "persistent://public/default/gone/secret"
        await tells(root, gone, b"1", retain=True)
        name = TopicName.parse("public/default/gone%2Fsecret")
        await administration.delete_topic(stage.broker, name, force=True)
        for people, expected in (("eve", []), ("ann", [b"1"]), ("root", [b"1"])):
            for filter in ("persistent://public/default/gone/+", "persistent://public/default/#"):
                assert await replayed(await person(stage, people), filter) == expected


async def test_a_retained_message_of_former_rules_is_judged_by_those_of_now() -> None:
    async with guarded() as stage:
        root, ann = await person(stage, "root"), await person(stage, "ann")
        await tells(root, "old/secret", b"1", retain=True)
        await stage.services.rule_changes.change(OLD, None)
        assert await replayed(await person(stage, "eve"), "old/+") == []
        assert await replayed(ann, "old/+") == [b"1"]


async def test_rules_for_mqtt_topics_hold_for_retained_messages() -> None:
    """What a filter is granted by, its messages are."""
    async with guarded(acl=AclFile("user eve\ntopic read a/+")) as stage:
        root, eve = await person(stage, "root"), await person(stage, "eve")
        await tells(root, "a/b", b"1", retain=True)
        assert await replayed(eve, "a/+") == [b"1"]


async def test_rights_that_go_during_a_replay() -> None:
    """Each message is judged when it is sent."""
    async with guarded() as stage:
        root = await person(stage, "root")
        prefix = "persistent://public/default/gone"
        for number in range(3):
            await tells(root, f"{prefix}/{number}", b"%d" % number, retain=True)
            name = TopicName.parse(f"public/default/gone%2F{number}")
            await administration.delete_topic(stage.broker, name, force=True)
        ann, (connack,) = await stage.connects(
            "ann", version=V5, username="ann", password=b"sesame", properties=b"\x21\0\x01"
        )
        assert connack.reasons == (0,)  # it receives one at a time
        got = await ann.says(subscribe((f"{prefix}/+", 1), version=V5))
        (first,) = [one for one in got if one.kind == "PUBLISH"]
        judge = stage.broker.access.judge
        assert judge is not None
        judge.permissions.namespaces.clear()
        judge.changed()
        assert await ann.acknowledges(first) == []


async def test_a_denial_behind_what_is_allowed_is_one_denial() -> None:
    """Packets of one log that come together are looked at once each."""
    file = AclFile("user eve\ntopic write mine/#")
    async with guarded(acl=file) as stage:
        eve = await person(stage, "eve")
        await tells(eve, "mine/a", b"0")
        before = stage.broker.access.denials
        topics = ["mine/a", "mine/b", "other", "mine/c", "other", "other"]
        answers = await eve.says(
            *(
                publish(topic, b"x", qos=1, number=number, version=V5)
                for number, topic in enumerate(topics, 2)
            )
        )
        denied = [one.number for one in answers if one.reasons == (REFUSED,)]
        assert sorted(one.number for one in answers) == list(range(2, 8))
        assert denied == [4, 6, 7]
        assert stage.broker.access.denials == before + 2, "6 and 7, of one topic, are one run"
