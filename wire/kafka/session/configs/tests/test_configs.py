"""Configs shown and changed by clients."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.wire.kafka import configs, errors
from magnetar.wire.kafka.conftest import Client, Stage, settled
from magnetar.wire.kafka.messages.configs import (
    AlterConfigsRequest,
    AlterResource,
    ChangeConfig,
    ChangeResource,
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribedResource,
    DescribeResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.session import long_lists
from magnetar.wire.kafka.session.configs import resources
from magnetar.wire.kafka.tests.batch import batch


async def described(
    client: Client, name: str = "t", kind: int = 2, keys: list[str] | None = None, **more: Any
) -> DescribedResource:
    expected = DescribeResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (outcomes,) = (
        await client.exchange(DescribeConfigsRequest(resources=[expected], **more), 4)
    ).results
    found: DescribedResource = outcomes
    return found


async def value_of(client: Client, name: str) -> tuple[str | None, int]:
    (found,) = (await described(client, keys=[name])).configs
    return found.value, found.config_source


async def changed(
    client: Client, *changes: tuple[str, int, str | None], name: str = "t", **more: Any
) -> int:
    resource = ChangeResource(
        resource_type=more.pop("kind", 2),
        resource_name=name,
        configs=[
            ChangeConfig(name=each, config_operation=operation, value=value)
            for each, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=more.get("validate_only", False)
    )
    (outcomes,) = (await client.exchange(request)).responses
    code: int = outcomes.error_code
    return code


async def test_all_of_a_topic(stage: Stage) -> None:
    stage = Stage(stage.stores, stage.broker, retention_ms=1000)
    client = await stage.client("t")
    outcomes = await described(client, include_synonyms=True, include_documentation=True)
    assert [one.name for one in outcomes.configs] == sorted(configs.TOPIC)
    by_name = {one.name: one for one in outcomes.configs}
    assert by_name["retention.ms"].value == "1000"
    assert by_name["retention.ms"].config_source == 4
    for name in ("cleanup.policy", "max.message.bytes"):  # the operator has left them alone
        assert by_name[name].config_source == 5
    assert by_name["cleanup.policy"].config_type == 7
    assert [one.source for one in by_name["retention.ms"].synonyms] == [4, 5]
    assert by_name["retention.ms"].documentation


async def test_the_broker(stage: Stage) -> None:
    client = await stage.client("t")
    outcomes = await described(client, "0", kind=4)
    assert {one.name: one.value for one in outcomes.configs}["num.partitions"] == "1"
    changeable = {one.name for one in outcomes.configs if not one.read_only}
    assert changeable == resources.THROTTLES


async def test_throttles_of_the_broker_may_be_taken_back(stage: Stage) -> None:
    """As tools do that have moved partitions, here and in topics."""
    client = await stage.client("t")
    gone = [(name, 1, None) for name in sorted(resources.THROTTLES)]
    assert await changed(client, *gone, kind=4, name="0") == 0
    replicas = "leader.replication.throttled.replicas"
    assert await changed(client, (replicas, 0, "0:0,1:0")) == 0
    assert await value_of(client, replicas) == ("0:0,1:0", 1)
    assert await changed(client, (replicas, 1, None)) == 0
    assert await changed(client, (replicas, 0, "all")) == errors.INVALID_CONFIG
    for wrong in (("log.dirs", 1, None), ("broker.id", 0, "7"), (gone[0][0], 0, "100")):
        assert await changed(client, wrong, kind=4, name="0") == errors.INVALID_REQUEST
    assert await changed(client, *gone, kind=4, name="7") == errors.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("none", 2, errors.UNKNOWN_TOPIC),
        ("a/b", 2, errors.INVALID_TOPIC),
        ("7", 4, errors.INVALID_REQUEST),
        ("t", 9, errors.INVALID_REQUEST),
    ],
)
async def test_what_cannot_be_shown(stage: Stage, name: str, kind: int, code: int) -> None:
    client = await stage.client("t")
    assert (await described(client, name, kind)).error_code == code


async def test_some_are_changed_and_the_others_stay(stage: Stage) -> None:
    client = await stage.client("t")
    assert await changed(client, ("retention.ms", 0, "1000"), ("segment.ms", 0, "5")) == 0
    assert await value_of(client, "retention.ms") == ("1000", 1)
    assert await changed(client, ("retention.ms", 1, None)) == 0
    assert await value_of(client, "retention.ms") == ("604800000", 5)
    assert await value_of(client, "segment.ms") == ("5", 1)
    topic = await stage.broker.topic(TopicName.parse("t-partition-0"))
    assert topic.policies.configs == {"segment.ms": "5"}


async def test_how_large_ledgers_become_holds_from_the_first_batch_on(stage: Stage) -> None:
    client = await stage.client("t")
    large = batch(*[b"x" * 10_000] * 60)
    configs = ("segment.bytes", 0, str(1 << 20)), ("max.message.bytes", 0, str(1 << 20))
    assert await changed(client, *configs) == 0
    for _ in range(2):
        for _ in range(4):
            assert (await client.produce("t", large)).error_code == 0
            stage.stores.clock.forward(2)
        topic = await stage.broker.topic(TopicName.parse("t-partition-0"))
        sizes = [one.size for one in topic.ledger.chain.segments]
        assert max(sizes) < 3 * len(large), sizes
        await stage.broker.unload(topic.name)


async def test_lists_grow_and_shrink(stage: Stage) -> None:
    client = await stage.client("t")
    for operation, value, there in ((2, "compact", "delete,compact"), (3, "delete", "compact")):
        assert await changed(client, ("cleanup.policy", operation, value)) == 0
        assert await value_of(client, "cleanup.policy") == (there, 1)


@pytest.mark.parametrize(
    "changes",
    [
        [("retention.ms", 0, "soon")],
        [("segment.ms", 0, "5"), ("retention.ms", 0, "-2")],
        [("retention.ms", 2, "1")],
        [("cleanup.policy", 2, "forget")],
        [("no.such", 1, None)],
    ],
)
async def test_what_may_not_be_changes_nothing(
    stage: Stage, changes: list[tuple[str, int, str | None]]
) -> None:
    client = await stage.client("t")
    assert await changed(client, *changes) == errors.INVALID_CONFIG
    effective = await stage.broker.catalog.effective(TopicName.parse("t"))
    assert effective.configs == {}


@pytest.mark.parametrize(
    ("changes", "more", "code"),
    [
        ([("retention.ms", 0, "1")], {"kind": 4, "name": "0"}, errors.INVALID_CONFIG),
        ([("retention.ms", 0, "1")], {"name": "none"}, errors.UNKNOWN_TOPIC),
        ([("retention.ms", 0, "1")] * 2, {}, errors.INVALID_REQUEST),
        ([("retention.ms", 4, "1")], {}, errors.INVALID_REQUEST),
        ([("retention.ms", 0, None)], {}, errors.INVALID_REQUEST),
        ([("retention.ms", 0, "1")], {"kind": 9}, errors.INVALID_REQUEST),
    ],
)
async def test_what_makes_no_sense(
    stage: Stage, changes: list[tuple[str, int, str | None]], more: dict[str, Any], code: int
) -> None:
    client = await stage.client("t")
    assert await changed(client, *changes, **more) == code


async def test_configs_are_looked_at_together(stage: Stage) -> None:
    client = await stage.client("t")
    low, high = ("min.compaction.lag.ms", 0, "20"), ("max.compaction.lag.ms", 0, "10")
    assert await changed(client, low) == 0
    for more in ({}, {"validate_only": True}):
        assert await changed(client, high, **more) == errors.INVALID_CONFIG
    assert (await value_of(client, high[0]))[1] == 5
    assert await changed(client, high, (low[0], 1, None)) == 0


async def test_only_asked_whether(stage: Stage) -> None:
    client = await stage.client("t")
    assert await changed(client, ("retention.ms", 0, "1"), validate_only=True) == 0
    assert await value_of(client, "retention.ms") == ("604800000", 5)


async def test_all_anew(stage: Stage) -> None:
    client = await stage.client("t")
    await changed(client, ("segment.ms", 0, "5"))
    resource = AlterResource(
        resource_type=ConfigResourceType.TOPIC,
        resource_name="t",
        configs=[ConfigValue(name="retention.ms", value="7")],
    )
    received = await client.exchange(AlterConfigsRequest(resources=[resource], validate_only=False))
    assert received.responses[0].error_code == 0
    assert await value_of(client, "retention.ms") == ("7", 1)
    assert (await value_of(client, "segment.ms"))[1] == 5


async def listed(client: Client, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    outcomes = await client.exchange(request, version)
    assert outcomes.error_code == errors.NONE
    return [(one.resource_type, one.resource_name) for one in outcomes.config_resources]


async def test_what_has_configs(stage: Stage) -> None:
    client = await stage.client("b", "a")
    assert await listed(client) == [(2, "a"), (2, "b"), (4, "0")]
    session = ("consumer.session.timeout.ms", 0, "50000")
    assert await changed(client, session, name="g", kind=32) == 0
    assert await listed(client) == [(2, "a"), (2, "b"), (4, "0"), (32, "g")]
    assert await listed(client, 32, 4, 32) == [(4, "0"), (32, "g")]
    assert await listed(client, 8, 16) == []
    assert await listed(client, version=0) == [], "client metrics were meant"


@pytest.mark.parametrize("kind", [0, 1, 64, -1])
async def test_kinds_that_nobody_knows(stage: Stage, kind: int) -> None:
    request = ListConfigResourcesRequest(resource_types=[2, kind])
    outcomes = await (await stage.client("t")).exchange(request)
    assert (outcomes.error_code, outcomes.config_resources) == (errors.UNSUPPORTED_VERSION, [])


async def test_a_refusal_that_quotes_a_long_name_can_be_written(stage: Stage) -> None:
    """Answers of old versions have no room for more than 32,767 bytes of it."""
    client = await stage.client("t")
    name = "n" * 32_760
    resource = AlterResource(resource_type=ConfigResourceType.TOPIC, resource_name=name, configs=[])
    request = AlterConfigsRequest(resources=[resource] * 2, validate_only=False)
    outcomes = (await client.exchange(request, 1)).responses
    assert [one.error_code for one in outcomes] == [errors.INVALID_REQUEST] * 2
    assert len(outcomes[0].error_message or "") == errors.REASON_CHARACTERS_MAX


async def test_long_lists_of_configs_are_made_one_at_a_time(stage: Stage) -> None:
    """And none for a client that does not read: six that asked for 10,000 held 700 MB."""
    client, other = await stage.client("t"), await stage.client("t")
    one = DescribeResource(
        resource_type=ConfigResourceType.TOPIC, resource_name="t", configuration_keys=["segment.ms"]
    )
    many = [one] * (long_lists.FEW + 1)
    client.line.congested = True
    client.ask(DescribeConfigsRequest(resources=many), 4)
    await settled()
    assert client.receive() == []
    received = await other.exchange(DescribeConfigsRequest(resources=many), 4)
    assert len(received.results) == len(many)
    async with stage.front.services.lists.lock:
        client.line.congested = False
        client.session.relieved()
        await settled()
        assert client.receive() == []
    await settled()
    (received,) = client.receive()
    assert len(received.results) == len(many)
