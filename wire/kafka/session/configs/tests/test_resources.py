"""Configs of groups, as tools see them, and what members make of them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.kafka.groups.configs import GROUP, HEARTBEAT_MS, SESSION_MS
from magnetar.wire.kafka.groups.options import GroupOptions
from magnetar.wire.kafka.messages.configs import (
    AlterConfigsRequest,
    AlterResource,
    ConfigResourceType,
)
from magnetar.wire.kafka.messages.groups import DeleteGroupsRequest
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.session.configs.configs import RESOURCES_MAX
from magnetar.wire.kafka.session.configs.tests.test_configs import changed, described
from magnetar.wire.kafka.session.groups.tests.test_consumer import Reader, made


async def configured(client: Client, *changes: tuple[str, int, str | None], **more: Any) -> int:
    return await changed(client, *changes, kind=32, **{"name": "g", **more})


async def shown(client: Client, name: str = "g") -> dict[str, tuple[str, int]]:
    outcomes = await described(client, name, kind=32)
    return {one.name: (one.value, one.config_source) for one in outcomes.configs}


async def test_a_group_that_was_told_nothing(stage: Stage) -> None:
    client = await stage.client()
    outcomes = await described(client, "g", 32, include_synonyms=True, include_documentation=True)
    assert [one.name for one in outcomes.configs] == sorted(GROUP)
    by_name = {one.name: one for one in outcomes.configs}
    session = by_name[SESSION_MS]
    assert (session.value, session.config_source, session.config_type) == ("45000", 5, 3)
    assert (session.read_only, bool(session.documentation)) == (False, True)
    assert [(one.value, one.source) for one in session.synonyms] == [("45000", 5)]


async def test_what_the_operator_likes_is_the_servers(stage: Stage) -> None:
    stage.front.services.group_configs.options = GroupOptions(consumer_session_ms=7_000)
    assert (await shown(await stage.client()))[SESSION_MS] == ("7000", 4)


async def test_some_are_changed_and_taken_back(stage: Stage) -> None:
    client = await stage.client()
    assert await configured(client, (SESSION_MS, 0, "50000")) == 0
    assert await shown(client) == {SESSION_MS: ("50000", 8), HEARTBEAT_MS: ("5000", 5)}
    assert await configured(client, (HEARTBEAT_MS, 0, "6000"), (SESSION_MS, 1, None)) == 0
    assert await shown(client) == {SESSION_MS: ("45000", 5), HEARTBEAT_MS: ("6000", 8)}
    assert await shown(client, "other") == {SESSION_MS: ("45000", 5), HEARTBEAT_MS: ("5000", 5)}


async def test_all_anew(stage: Stage) -> None:
    client = await stage.client()
    await configured(client, (SESSION_MS, 0, "50000"))
    for value, code in (("6000", 0), (None, errors.INVALID_REQUEST), ("1", errors.INVALID_CONFIG)):
        own = ConfigValue(name=HEARTBEAT_MS, value=value)
        resource = AlterResource(
            resource_type=ConfigResourceType.GROUP, resource_name="g", configs=[own]
        )
        received = await client.exchange(
            AlterConfigsRequest(resources=[resource], validate_only=False)
        )
        assert received.responses[0].error_code == code
        assert await shown(client) == {SESSION_MS: ("45000", 5), HEARTBEAT_MS: ("6000", 8)}


@pytest.mark.parametrize(
    ("changes", "more", "code"),
    [
        ([(SESSION_MS, 0, "44999")], {}, errors.INVALID_CONFIG),
        ([(HEARTBEAT_MS, 0, "often")], {}, errors.INVALID_CONFIG),
        ([(SESSION_MS, 0, "50000"), (HEARTBEAT_MS, 0, "1")], {}, errors.INVALID_CONFIG),
        ([(SESSION_MS, 2, "1")], {}, errors.INVALID_CONFIG),
        ([("share.session.timeout.ms", 0, "45000")], {}, errors.INVALID_CONFIG),
        ([("retention.ms", 0, "45000")], {}, errors.INVALID_CONFIG),
        ([(SESSION_MS, 0, None)], {}, errors.INVALID_REQUEST),
        ([(SESSION_MS, 0, "50000")] * 2, {}, errors.INVALID_REQUEST),
        ([(SESSION_MS, 0, "50000")], {"name": ""}, errors.INVALID_REQUEST),
        ([(SESSION_MS, 0, "50000")], {"validate_only": True}, errors.NONE),
    ],
)
async def test_what_changes_nothing(
    stage: Stage, changes: list[tuple[str, int, str | None]], more: dict[str, Any], code: int
) -> None:
    client = await stage.client()
    assert await configured(client, *changes, **more) == code
    assert stage.front.services.group_configs.names() == []


async def test_no_group_is_all_of_them(stage: Stage) -> None:
    outcomes = await described(await stage.client(), "", kind=32)
    assert outcomes.error_code == errors.INVALID_REQUEST


async def test_members_learn_of_it_when_they_call(stage: Stage) -> None:
    await made(stage, "t", 2)
    client = await stage.client()
    quick, slow = Reader(client, "a"), Reader(client, "b")
    for reader in (quick, slow):
        assert (await reader.join("t")).heartbeat_interval_ms == 5000
    await configured(client, (SESSION_MS, 0, "60000"), (HEARTBEAT_MS, 0, "15000"))
    assert (await quick.beat()).heartbeat_interval_ms == 15_000
    group = stage.front.services.groups.consumer("g")
    assert group is not None
    for seconds, members in ((46, {"a"}), (13, {"a"}), (2, set())):
        stage.stores.clock.forward(seconds)
        await stage.front.services.groups.tick()
        assert set(group.members) == members, "who did not call is held to what it was told"
    assert (await Reader(client, "c").join("t")).heartbeat_interval_ms == 15_000


async def test_they_outlast_a_restart_and_the_group(stage: Stage) -> None:
    await made(stage, "t", 1)
    client = await stage.client()
    await configured(client, (HEARTBEAT_MS, 0, "7000"))
    reader = Reader(client, "a")
    await reader.join("t")
    front = stage.front = KafkaFront(stage.broker, KafkaOptions())
    stage.broker.spawn(front.services.member_store.run)
    await front.open()
    reader.client = client = await stage.client()
    assert (await reader.beat()).heartbeat_interval_ms == 7000
    reader.epoch = -1
    await reader.beat()
    received = await client.exchange(DeleteGroupsRequest(groups_names=["g"]))
    assert received.results[0].error_code == errors.NONE
    assert (await shown(client))[HEARTBEAT_MS] == ("7000", 8)


async def test_what_is_named_twice_or_too_often_is_refused(stage: Stage) -> None:
    client = await stage.client()
    own = [ConfigValue(name=HEARTBEAT_MS, value="6000")]
    twice = [
        AlterResource(resource_type=ConfigResourceType.GROUP, resource_name=name, configs=own)
        for name in "ggh"
    ]
    received = await client.exchange(AlterConfigsRequest(resources=twice, validate_only=True))
    refused = errors.INVALID_REQUEST
    assert [one.error_code for one in received.responses] == [refused, refused, errors.NONE]
    many = [
        AlterResource(resource_type=ConfigResourceType.GROUP, resource_name=f"{number}", configs=[])
        for number in range(RESOURCES_MAX + 1)
    ]
    received = await client.exchange(AlterConfigsRequest(resources=many, validate_only=True))
    assert [one.error_code for one in received.responses[-2:]] == [errors.NONE, refused]
