"""Every served request has its rights, and what is refused is answered in Kafka's way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.security.acls import Acl, Acls, Pattern
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.apis import APIS, encode_response
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request, produce_request
from magnetar.wire.kafka.messages.basics import (
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.configs import DescribeConfigsRequest, DescribeResource
from magnetar.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from magnetar.wire.kafka.messages.groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
)
from magnetar.wire.kafka.messages.parts import TopicIndexes
from magnetar.wire.kafka.messages.tests.samples import full
from magnetar.wire.kafka.messages.topics import CreateTopic, CreateTopicsRequest
from magnetar.wire.kafka.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddTopic,
    InitProducerIdRequest,
    WriteMarker,
    WriteTxnMarkersRequest,
)
from magnetar.wire.kafka.session import refusals, rights
from magnetar.wire.kafka.session.sasl import HELLO
from magnetar.wire.kafka.session.versions import SERVED
from magnetar.wire.kafka.tests.batch import batch

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


@pytest.fixture
async def guarded_stage() -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores, access=guarded(["root"])) as broker:
        yield Stage(stores, broker)


def client_of(stage: Stage, name: str) -> Client:
    """A client that has authenticated."""
    client = Client(stage.front, known=stage.known, large=stage.large)
    client.session.caller.identity = Identity(name, (name,), "PLAIN")
    client.session.caller.admitted = True
    return client


def grant(stage: Stage, *rules: tuple[Action, ResourceType, str]) -> None:
    """Allow `ali` that, and nothing else."""
    judge = stage.broker.access.judge
    assert judge is not None
    judge.acls = Acls(
        Acl(kind, Pattern.LITERAL, name, "User:ali", "*", action, True)
        for action, kind, name in rules
    )
    judge.changed()


async def with_topics(stage: Stage, *names: str) -> Client:
    """Make topics as an administrator."""
    root = client_of(stage, "root")
    topics = [
        CreateTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for name in names
    ]
    made = await root.exchange(CreateTopicsRequest(topics=topics))
    assert {topic.error_code for topic in made.topics} == {0}
    return root


def test_every_served_request_has_its_rights() -> None:
    tables = [set(rights.RIGHTS), set(rights.OWN), set(HELLO)]
    assert set().union(*tables) == set(SERVED)
    assert sum(map(len, tables)) == len(SERVED)


@pytest.mark.parametrize("key", sorted(rights.RIGHTS))
def test_every_refusal_can_be_sent(key: int) -> None:
    api, (low, high) = APIS[key], SERVED[key]
    for version in range(max(low, api.request.VERSIONS[0]), high + 1):
        request = full(api.request, version)
        response = refusals.refusal(key, request, 31)
        assert encode_response(key, version, 1, response)
        listed = key in refusals.ANSWERS
        assert listed or "error_code" in type(response).__struct_fields__
        row = rights.RIGHTS[key]
        assert not row.items or (listed and row.items == refusals.ANSWERS[key].items)


async def test_a_topic_that_may_not_be_read_is_refused_beside_one_that_may(
    guarded_stage: Stage,
) -> None:
    await with_topics(guarded_stage, "mine", "theirs")
    grant(guarded_stage, (Action.READ, TOPIC, "mine"))
    ali = client_of(guarded_stage, "ali")
    request = fetch_request("mine", 0)
    request.topics += fetch_request("theirs", 0).topics
    found = await ali.exchange(request, 12)
    assert {one.topic: one.partitions[0].error_code for one in found.responses} == {
        "mine": errors.NONE,
        "theirs": errors.TOPIC_AUTHORIZATION_FAILED,
    }


async def test_all_topics_refused_are_answered_at_once(guarded_stage: Stage) -> None:
    await with_topics(guarded_stage, "theirs")
    ali = client_of(guarded_stage, "ali")
    found = await ali.exchange(fetch_request("theirs", 0, wait_ms=60_000, min_bytes=1), 12)
    (part,) = found.responses[0].partitions
    assert (part.error_code, part.high_watermark) == (errors.TOPIC_AUTHORIZATION_FAILED, -1)


async def test_topics_by_id_are_looked_up_first(guarded_stage: Stage) -> None:
    root = await with_topics(guarded_stage, "mine", "theirs")
    ids = {}
    for name in ("mine", "theirs"):
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        ids[name] = (await root.exchange(asked, 12)).topics[0].topic_id
    guarded_stage.front.services.logs._names.clear()
    grant(guarded_stage, (Action.READ, TOPIC, "mine"))
    ali = client_of(guarded_stage, "ali")
    request = fetch_request("", 0)
    request.topics[0].topic_id = ids["mine"]
    for topic_id in (ids["theirs"], bytes(15) + b"\x01"):
        request.topics += fetch_request("", 0).topics
        request.topics[-1].topic_id = topic_id
    found = await ali.exchange(request, 13)
    assert [(one.topic_id, one.partitions[0].error_code) for one in found.responses] == [
        (ids["mine"], errors.NONE),
        (ids["theirs"], errors.TOPIC_AUTHORIZATION_FAILED),
        (bytes(15) + b"\x01", errors.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("known", [False, True])
async def test_a_producer_loses_its_right_with_its_next_batch(
    guarded_stage: Stage, known: bool
) -> None:
    guarded_stage.known = known
    await with_topics(guarded_stage, "mine")
    grant(guarded_stage, (Action.WRITE, TOPIC, "mine"))
    ali = client_of(guarded_stage, "ali")
    assert (await ali.produce("mine", batch(b"a"))).error_code == errors.NONE
    assert (await ali.produce("mine", batch(b"b"))).error_code == errors.NONE
    grant(guarded_stage)
    refused = await ali.produce("mine", batch(b"c"))
    assert refused.error_code == errors.TOPIC_AUTHORIZATION_FAILED
    transactional = produce_request("mine", batch(b"d"))
    transactional.transactional_id = "t"
    grant(guarded_stage, (Action.WRITE, TOPIC, "mine"))
    found = await ali.exchange(transactional, 9)
    (part,) = found.responses[0].partition_responses
    assert part.error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_metadata_shows_what_may_be_described(guarded_stage: Stage) -> None:
    await with_topics(guarded_stage, "mine", "theirs")
    grant(guarded_stage, (Action.DESCRIBE, TOPIC, "mine"))
    ali = client_of(guarded_stage, "ali")
    found = await ali.exchange(
        MetadataRequest(topics=None, include_topic_authorized_operations=True), 12
    )
    assert [(one.name, one.topic_authorized_operations) for one in found.topics] == [
        ("mine", 1 << Action.DESCRIBE)
    ]
    named = [MetadataRequestTopic(name=name) for name in ("mine", "theirs", "new")]
    found = await ali.exchange(MetadataRequest(topics=named), 12)
    assert [one.error_code for one in found.topics] == [0, 29, 29]
    assert found.topics[1].topic_id == bytes(16)
    grant(guarded_stage, (Action.DESCRIBE, TOPIC, "*"))
    found = await ali.exchange(MetadataRequest(topics=named[2:]), 12)
    assert [one.error_code for one in found.topics] == [29], "it may not create the topic"


async def test_topics_are_created_by_a_right_for_them_or_for_the_cluster(
    guarded_stage: Stage,
) -> None:
    def creation(*names: str) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=[
                CreateTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
                )
                for name in names
            ]
        )

    ali = client_of(guarded_stage, "ali")
    grant(guarded_stage, (Action.CREATE, TOPIC, "a"))
    found = await ali.exchange(creation("a", "b"))
    assert {one.name: one.error_code for one in found.topics} == {"a": 0, "b": 29}
    made = found.topics[0]
    assert (made.topic_config_error_code, made.num_partitions) == (29, -1)
    grant(guarded_stage, (Action.CREATE, CLUSTER, CLUSTER_NAME))
    found = await ali.exchange(creation("b"))
    assert {one.name: one.error_code for one in found.topics} == {"b": 0}


async def test_groups_are_refused_by_name(guarded_stage: Stage) -> None:
    grant(guarded_stage, (Action.DESCRIBE, GROUP, "mine"))
    ali = client_of(guarded_stage, "ali")
    beat = HeartbeatRequest(group_id="mine", generation_id=1, member_id="m")
    assert (await ali.exchange(beat)).error_code == errors.GROUP_AUTHORIZATION_FAILED
    keys = FindCoordinatorRequest(coordinator_keys=["mine", "theirs"])
    found = await ali.exchange(keys)
    assert [one.error_code for one in found.coordinators] == [0, 30]
    asked = DescribeGroupsRequest(groups=["mine", "theirs"], include_authorized_operations=True)
    found = await ali.exchange(asked, 5)
    assert {one.group_id: (one.error_code, one.authorized_operations) for one in found.groups} == {
        "mine": (0, 1 << Action.DESCRIBE),
        "theirs": (30, -2147483648),
    }
    assert (await ali.exchange(ListGroupsRequest())).groups == []


async def test_long_lists_have_what_was_refused(guarded_stage: Stage) -> None:
    await with_topics(guarded_stage, "mine")
    grant(guarded_stage, (Action.DESCRIBE_CONFIGS, TOPIC, "mine"))
    ali = client_of(guarded_stage, "ali")
    resources = [
        DescribeResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "mine"), (2, "theirs"), (4, "1"), (32, "g"))
    ]
    found = await ali.exchange(DescribeConfigsRequest(resources=resources))
    assert {(one.resource_type, one.resource_name): one.error_code for one in found.results} == {
        (2, "mine"): 0,
        (2, "theirs"): 29,
        (4, "1"): 31,
        (32, "g"): 30,
    }


async def test_a_producer_id_needs_some_right_to_write(guarded_stage: Stage) -> None:
    ali = client_of(guarded_stage, "ali")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert (await ali.exchange(request)).error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    for right in ((Action.WRITE, TOPIC, "t"), (Action.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)):
        grant(guarded_stage, right)
        assert (await ali.exchange(request)).error_code == errors.NONE
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
    assert (await ali.exchange(request)).error_code == 53


async def test_partitions_join_a_transaction_together(guarded_stage: Stage) -> None:
    await with_topics(guarded_stage, "mine", "theirs")
    grant(
        guarded_stage,
        (Action.WRITE, TOPIC, "mine"),
        (Action.WRITE, ResourceType.TRANSACTION, "t"),
    )
    ali = client_of(guarded_stage, "ali")
    topics = [AddTopic(name=name, partitions=[0]) for name in ("mine", "theirs")]
    request = AddPartitionsToTxnRequest(
        transactional_id="t", producer_id=1, producer_epoch=0, topics=topics
    )
    found = await ali.exchange(request)
    assert {
        one.name: one.results_by_partition[0].partition_error_code for one in found.results_by_topic
    } == {"mine": errors.OPERATION_NOT_ATTEMPTED, "theirs": errors.TOPIC_AUTHORIZATION_FAILED}


async def test_members_with_a_hidden_topic_are_hidden(guarded_stage: Stage) -> None:
    root = await with_topics(guarded_stage, "mine")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["mine"],
        topic_partitions=[],
    )
    described = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    assert (await root.exchange(beat)).error_code == 0
    ali = client_of(guarded_stage, "ali")
    grant(guarded_stage, (Action.READ, GROUP, "g"))
    (group,) = (await ali.exchange(described)).groups
    assert (group.error_code, group.members) == (errors.TOPIC_AUTHORIZATION_FAILED, [])
    beat.member_id = "other"
    assert (await ali.exchange(beat)).error_code == errors.TOPIC_AUTHORIZATION_FAILED
    grant(guarded_stage, (Action.READ, GROUP, "g"), (Action.DESCRIBE, TOPIC, "mine"))
    (group,) = (await ali.exchange(described)).groups
    assert (group.error_code, len(group.members)) == (0, 1)


async def test_a_pattern_finds_what_its_member_may_describe(guarded_stage: Stage) -> None:
    root = await with_topics(guarded_stage, "t-mine", "t-theirs")
    ali = client_of(guarded_stage, "ali")
    grant(guarded_stage, (Action.READ, GROUP, "g"), (Action.DESCRIBE, TOPIC, "t-mine"))

    async def assigned(client: Client, epoch: int = 0) -> tuple[int, int]:
        """The epoch of a member, and the number of its topics."""
        beat = ConsumerGroupHeartbeatRequest(
            group_id="g" if client is ali else "all",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=1000,
            subscribed_topic_regex="t-.*",
            topic_partitions=[],
        )
        found = await client.exchange(beat)
        assert found.error_code == 0
        return found.member_epoch, len(found.assignment.topic_partitions)

    assert (await assigned(root))[1] == 2
    epoch, topics = await assigned(ali)
    assert topics == 1
    assert await assigned(ali, epoch) == (epoch, 1), "it stays so"
    grant(
        guarded_stage,
        (Action.READ, GROUP, "g"),
        (Action.DESCRIBE, TOPIC, "t-mine"),
        (Action.DESCRIBE, TOPIC, "t-theirs"),
    )
    epoch, topics = await assigned(ali, epoch)
    assert topics == 2, "a right that is given counts with the next heartbeat"
    grant(guarded_stage, (Action.READ, GROUP, "g"))
    _, topics = await assigned(ali, epoch)
    assert topics == 0


@pytest.mark.parametrize("action", [Action.ALTER, Action.CLUSTER_ACTION])
async def test_markers_are_written_by_either_right(guarded_stage: Stage, action: Action) -> None:
    await with_topics(guarded_stage, "t")
    marker = WriteMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=False,
        topics=[TopicIndexes(name="t", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    ali = client_of(guarded_stage, "ali")

    async def code() -> int:
        found = await ali.exchange(WriteTxnMarkersRequest(markers=[marker]))
        outcome: int = found.markers[0].topics[0].partitions[0].error_code
        return outcome

    assert await code() == errors.CLUSTER_AUTHORIZATION_FAILED
    grant(guarded_stage, (action, CLUSTER, CLUSTER_NAME))
    assert await code() != errors.CLUSTER_AUTHORIZATION_FAILED
