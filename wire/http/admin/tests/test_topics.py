"""Topics come, grow and go."""

import pytest

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default"
FULL = "persistent://public/default"


async def test_a_topic_comes_and_goes(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a")
    await visitor.fails(409, "PUT", f"{HERE}/a")
    assert await visitor.get(HERE) == [f"{FULL}/a"]
    assert await visitor.get(f"{HERE}/a/partitions") == {"partitions": 0, "deleted": False}
    await visitor.does("DELETE", f"{HERE}/a")
    await visitor.fails(404, "DELETE", f"{HERE}/a")
    assert await visitor.get(HERE) == []


async def test_topics_of_the_system_are_listed_when_asked_for(visitor: Visitor) -> None:
    await visitor.topic("__ours")
    await visitor.topic("a")
    spaces = "/admin/v2/namespaces/public/default/topics"
    for path in (HERE, spaces):
        assert await visitor.get(path) == [f"{FULL}/a"]
        both = await visitor.get(f"{path}?includeSystemTopic=true")
        assert sorted(both) == [f"{FULL}/__ours", f"{FULL}/a"]


async def test_a_topic_needs_its_namespace(visitor: Visitor) -> None:
    await visitor.fails(404, "PUT", "/admin/v2/persistent/public/missing/a")
    await visitor.fails(404, "GET", "/admin/v2/persistent/public/missing")
    await visitor.fails(404, "PUT", "/admin/v2/persistent/public/missing/a/partitions", 2)


async def test_a_topic_in_use_goes_only_by_force(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a")
    await visitor.does("PUT", f"{HERE}/a/subscription/s")
    consumer = await attached(await visitor.topic(f"{FULL}/a"), SubscriptionType.SHARED)
    await visitor.fails(412, "DELETE", f"{HERE}/a")
    await visitor.does("DELETE", f"{HERE}/a?force=true")
    assert consumer.events == ["closed"]


async def test_a_topic_to_which_nobody_is_connected_goes_with_its_subscriptions(
    visitor: Visitor,
) -> None:
    """As Apache's broker 4.2 deletes it."""
    await visitor.publish(f"{FULL}/a", [b"not consumed"])
    await visitor.does("PUT", f"{HERE}/a/subscription/s")
    await visitor.does("DELETE", f"{HERE}/a")
    assert await visitor.get(HERE) == []


async def test_a_partitioned_topic_comes_grows_and_goes(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    await visitor.fails(409, "PUT", f"{HERE}/p/partitions", 2)
    assert await visitor.get(HERE) == [f"{FULL}/p-partition-0", f"{FULL}/p-partition-1"]
    assert await visitor.get(f"{HERE}/partitioned") == [f"{FULL}/p"]
    assert (await visitor.get(f"{HERE}/p/partitions"))["partitions"] == 2
    await visitor.does("POST", f"{HERE}/p/partitions", 3)
    await visitor.fails(400, "POST", f"{HERE}/p/partitions", 3)
    await visitor.does("POST", f"{HERE}/p/createMissedPartitions")
    assert len(await visitor.get(HERE)) == 3
    await visitor.fails(412, "DELETE", f"{HERE}/p")
    await visitor.does("DELETE", f"{HERE}/p/partitions")
    assert await visitor.get(HERE) == []
    await visitor.fails(404, "DELETE", f"{HERE}/p/partitions")


async def test_partitions_come_as_a_number_or_an_object(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a/partitions", b"1")
    await visitor.does("PUT", f"{HERE}/b/partitions", {"partitions": 1, "properties": {}})
    await visitor.does("PUT", f"{HERE}/c/partitions", b'"1"')
    for body in (b"", b"null", b"0", b"-1", b"many", b"[2]", b"1000000"):
        await visitor.fails(400, "PUT", f"{HERE}/d/partitions", body)


async def test_names_of_partitions(visitor: Visitor) -> None:
    """Statuses are those of Apache's broker (4.2.4, as seen)."""
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    await visitor.fails(409, "PUT", f"{HERE}/p-partition-1")
    await visitor.fails(412, "PUT", f"{HERE}/p-partition-2")
    strays = ("3", "03", "-1", "99999999999", "9223372036854775807", "a-partition-3")
    for domain in (HERE, HERE.replace("persistent", "non-persistent")):
        for stray in strays:
            await visitor.fails(412, "PUT", f"{domain}/x-partition-{stray}")
    plain = ("", "a", "+3", "9223372036854775808", "3-dlq", "3-partition-a")
    for name in plain:
        await visitor.does("PUT", f"{HERE}/x-partition-{name}")
        await visitor.fails(412, "PUT", f"{HERE}/y-partition-{name}/partitions", 2)
    for name in ("p-partition-0", "x-partition-3"):
        for method, what in (
            ("PUT", "partitions"),
            ("POST", "partitions"),
            ("DELETE", "partitions"),
            ("POST", "createMissedPartitions"),
            ("GET", "partitioned-stats"),
        ):
            await visitor.fails(412, method, f"{HERE}/{name}/{what}", 2)
    assert (await visitor.get(f"{HERE}/p-partition-1/partitions"))["partitions"] == 0
    for absent in ("p-partition-2", "x-partition-3"):
        await visitor.fails(404, "GET", f"{HERE}/{absent}/partitions")
        asked = f"{HERE}/{absent}/partitions?checkAllowAutoCreation=true"
        assert (await visitor.get(asked))["partitions"] == 0
        await visitor.fails(404, "GET", f"{HERE}/{absent}/stats")


async def test_a_missing_partition_is_created(visitor: Visitor) -> None:
    name = TopicName.parse("p")
    await visitor.broker.catalog.create_partitioned(name, 2)
    await visitor.does("PUT", f"{HERE}/p-partition-1")
    await visitor.fails(409, "PUT", f"{HERE}/p-partition-1")
    assert await visitor.broker.exists(name.partition(1))
    assert not await visitor.broker.exists(name.partition(0))


async def test_asking_for_partitions_creates_only_when_told(visitor: Visitor) -> None:
    await visitor.fails(404, "GET", f"{HERE}/new/partitions")
    automatic = {"allowAutoTopicCreation": True, "topicType": "partitioned"}
    policy = "/admin/v2/namespaces/public/default/autoTopicCreation"
    await visitor.does("POST", policy, {**automatic, "defaultNumPartitions": 3})
    answer = await visitor.get(f"{HERE}/new/partitions?checkAllowAutoCreation=true")
    assert answer["partitions"] == 3


async def test_a_topic_that_stores_nothing(visitor: Visitor) -> None:
    volatile = "/admin/v2/non-persistent/public/default"
    await visitor.does("PUT", f"{volatile}/a")
    assert await visitor.get(volatile) == ["non-persistent://public/default/a"]
    assert await visitor.get(HERE) == []
    for method, path in (
        ("POST", "terminate"),
        ("GET", "internalStats"),
        ("GET", "lastMessageId"),
        ("PUT", "subscription/s"),
        ("POST", "subscription/s/skip_all"),
    ):
        await visitor.fails(405, method, f"{volatile}/a/{path}")
    assert (await visitor.get(f"{volatile}/a/stats"))["storageSize"] == 0
    await visitor.does("PUT", f"{volatile}/a/unload")
    assert visitor.broker.topics == {}


async def test_unloaded_topics_are_found_again(visitor: Visitor) -> None:
    await visitor.publish("a", [b"1", b"2"])
    await visitor.does("PUT", f"{HERE}/a/unload")
    assert visitor.broker.topics == {}
    last = await visitor.get(f"{HERE}/a/lastMessageId")
    assert last["entryId"] == 1
    await visitor.fails(404, "PUT", f"{HERE}/missing/unload")


async def test_a_terminated_topic_names_its_last_message(visitor: Visitor) -> None:
    places = await visitor.publish("a", [b"1", b"2"])
    answer = await visitor.ask("POST", f"{HERE}/a/terminate")
    assert answer.status_code == 200
    assert answer.json() == {
        "ledgerId": places[1][0],
        "entryId": places[1][1],
        "partitionIndex": -1,
    }
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    await visitor.fails(405, "POST", f"{HERE}/p/terminate")
    ends = (await visitor.ask("POST", f"{HERE}/p/terminate/partitions")).json()
    assert set(ends) == {"0", "1"}
    assert ends["1"]["partitionIndex"] == 1


async def test_truncating_deletes_what_was_published(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await topic.subscription("s")
    await visitor.publish("a", [b"1", b"2"])
    await visitor.does("DELETE", f"{HERE}/a/truncate")
    assert topic.ledger.chain.segments == []
    assert topic.subscriptions["s"].cursor.backlog == 0
    await visitor.publish("a", [b"3"])
    assert topic.subscriptions["s"].cursor.backlog == 1
    await visitor.does("POST", f"{HERE}/a/trim")
    assert topic.subscriptions["s"].cursor.backlog == 1


async def test_work_that_this_server_does_not_do(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a")
    await visitor.fails(405, "PUT", f"{HERE}/a/offload")


async def test_compaction(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a/partitions", 2)
    await visitor.does("PUT", f"{HERE}/a/compaction")
    one = f"{HERE}/a-partition-1/compaction"
    assert await visitor.get(one) == {"status": "RUNNING", "lastError": ""}
    assert await visitor.fails(409, "PUT", one) == "Compaction already in progress"
    assert (await visitor.get(f"{HERE}/a/compaction"))["status"] == "RUNNING"
    await settled()
    for path in (one, f"{HERE}/a/compaction"):
        assert await visitor.get(path) == {"status": "SUCCESS", "lastError": ""}
    await visitor.fails(404, "GET", f"{HERE}/missing/compaction")
    await visitor.fails(404, "PUT", f"{HERE}/missing/compaction")
    nothing = "/admin/v2/non-persistent/public/default/n"
    await visitor.does("PUT", nothing)
    await visitor.fails(405, "PUT", f"{nothing}/compaction")


async def test_a_compaction_that_fails(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await visitor.publish("a", [entry(b"1", key=b"k")])

    async def fails(*_given: object) -> None:
        raise StorageFailed("no room")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(topic.ledger, "create", fails)
        await visitor.does("PUT", f"{HERE}/a/compaction")
        await settled()
    last = await visitor.get(f"{HERE}/a/compaction")
    assert last == {"status": "ERROR", "lastError": "no room"}
    stats = await visitor.get(f"{HERE}/a/stats")
    assert stats["compaction"]["lastCompactionFailedTimestamp"] > 0
    await visitor.does("PUT", f"{HERE}/a/compaction")
    await settled()
    last = await visitor.get(f"{HERE}/a/compaction")
    assert last == {"status": "SUCCESS", "lastError": ""}


async def test_properties_survive_an_unload(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a", {"one": "1"})
    await visitor.does("PUT", f"{HERE}/a/properties", {"two": "2"})
    await visitor.does("PUT", f"{HERE}/a/unload")
    assert await visitor.get(f"{HERE}/a/properties") == {"one": "1", "two": "2"}
    await visitor.does("DELETE", f"{HERE}/a/properties?key=one")
    assert await visitor.get(f"{HERE}/a/properties") == {"two": "2"}
    await visitor.fails(400, "PUT", f"{HERE}/a/properties", {"magnetar.next-index": "0"})
    await visitor.fails(400, "DELETE", f"{HERE}/a/properties?key=magnetar.next-index")


async def test_a_property_may_be_called_as_the_whole_is(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a", {"properties": "1"})
    assert await visitor.get(f"{HERE}/a/properties") == {"properties": "1"}
    await visitor.does("PUT", f"{HERE}/b", {"properties": {"properties": "2"}})
    assert await visitor.get(f"{HERE}/b/properties") == {"properties": "2"}


async def test_a_partitioned_topic_has_properties_as_a_whole(visitor: Visitor) -> None:
    body = {"partitions": 2, "deleted": False, "properties": {"one": "1"}}
    await visitor.does("PUT", f"{HERE}/p/partitions", body)
    assert await visitor.get(f"{HERE}/p/properties") == {"one": "1"}
    assert await visitor.get(f"{HERE}/p-partition-0/properties") == {}
    await visitor.does("PUT", f"{HERE}/p/properties", {"two": "2"})
    await visitor.does("POST", f"{HERE}/p/partitions", 3)
    assert await visitor.get(f"{HERE}/p/partitions") == {
        "partitions": 3,
        "deleted": False,
        "properties": {"one": "1", "two": "2"},
    }
    await visitor.does("DELETE", f"{HERE}/p/properties?key=one")
    await visitor.does("DELETE", f"{HERE}/p/properties?key=other")
    assert await visitor.get(f"{HERE}/p/properties") == {"two": "2"}
    await visitor.fails(400, "PUT", f"{HERE}/p/properties", {"magnetar.x": "0"})
    await visitor.fails(400, "PUT", f"{HERE}/p/properties", {"number": 1})
    await visitor.fails(404, "GET", f"{HERE}/missing/properties")
    await visitor.does("DELETE", f"{HERE}/p/partitions")
    await visitor.does("PUT", f"{HERE}/p/partitions", 1)
    assert await visitor.get(f"{HERE}/p/properties") == {}


async def test_shadows_of_a_topic(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/source")
    shown = {"PULSAR.SHADOW_SOURCE": "persistent://public/default/source"}
    await visitor.does("PUT", f"{HERE}/shadow", shown)
    await visitor.fails(409, "PUT", f"{HERE}/shadow", shown)
    for status, source in (
        (404, "missing"),
        (412, "shadow"),
        (412, "non-persistent://public/default/source"),
        (412, "a//b"),
        (404, "persistent://public/nowhere/source"),
    ):
        await visitor.fails(status, "PUT", f"{HERE}/other", {"PULSAR.SHADOW_SOURCE": source})
        await visitor.fails(404, "GET", f"{HERE}/other/stats")
    await visitor.fails(404, "PUT", f"{HERE.replace('default', 'nowhere')}/other", shown)
    assert len(await visitor.get(HERE)) == 2
    for method, path in (
        ("POST", "terminate"),
        ("DELETE", "truncate"),
        ("POST", "trim"),
        ("PUT", "compaction"),
    ):
        await visitor.fails(412, method, f"{HERE}/shadow/{path}")
    source = await visitor.topic("source")
    source.compacted.progress.begin()  # it has one to show
    source.compacted.progress.end("", 0, 0, 0)
    await visitor.does("POST", f"{HERE}/shadow/compactionThreshold", 1)
    await visitor.fails(412, "DELETE", f"{HERE}/shadow/subscription/__compaction")
    await visitor.does("PUT", f"{HERE}/source/shadowTopics", ["shadow"])
    await visitor.fails(422, "DELETE", f"{HERE}/source")
    await visitor.does("DELETE", f"{HERE}/source?force=true")
    assert "source" in (await visitor.fails(404, "GET", f"{HERE}/shadow/stats"))
    await visitor.does("DELETE", f"{HERE}/shadow")
    assert await visitor.get(HERE) == []


async def test_shadows_of_a_partitioned_topic(visitor: Visitor) -> None:
    shown = {"PULSAR.SHADOW_SOURCE": "persistent://public/default/source"}
    await visitor.does("PUT", f"{HERE}/source/partitions", 2)
    await visitor.fails(412, "PUT", f"{HERE}/shadow", shown)
    body = {"partitions": 3, "properties": shown}
    await visitor.fails(412, "PUT", f"{HERE}/shadow/partitions", body)
    await visitor.does("PUT", f"{HERE}/shadow/partitions", {**body, "partitions": 2})
    assert await visitor.get(f"{HERE}/shadow/properties") == shown
    await visitor.fails(412, "POST", f"{HERE}/shadow/partitions", 3)
    await visitor.does("POST", f"{HERE}/source/partitions", 3)
    await visitor.does("POST", f"{HERE}/shadow/partitions", 3)
    for number in range(3):
        source, shadow = [
            await visitor.topic(f"{name}-partition-{number}") for name in ("source", "shadow")
        ]
        assert shadow.ledger.chain is source.ledger.chain
    await visitor.fails(412, "PUT", f"{HERE}/shadow-partition-3", shown)
    await visitor.does("DELETE", f"{HERE}/source/partitions")
    await visitor.does("DELETE", f"{HERE}/shadow/partitions")
    assert await visitor.get(HERE) == []


async def test_permissions_of_a_topic_add_to_the_namespaces(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a")
    await visitor.does("POST", "/admin/v2/namespaces/public/default/permissions/all", ["consume"])
    await visitor.does("POST", f"{HERE}/a/permissions/me", ["produce"])
    assert await visitor.get(f"{HERE}/a/permissions") == {"all": ["consume"], "me": ["produce"]}
    why = await visitor.fails(400, "POST", f"{HERE}/a/permissions/me", ["produce", "fly"])
    assert "'fly'" in why
    await visitor.does("DELETE", f"{HERE}/a/permissions/me")
    assert await visitor.get(f"{HERE}/a/permissions") == {"all": ["consume"]}


async def test_topics_of_a_bundle(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/non-persistent/public/default/a")
    await visitor.topic("b")
    there = "/admin/v2/non-persistent/public/default"
    assert await visitor.get(f"{there}/{BUNDLE}") == ["non-persistent://public/default/a"]
    assert "no bundle" in await visitor.fails(404, "GET", f"{there}/0x0_0x1")
    await visitor.fails(404, "GET", f"/admin/v2/non-persistent/public/missing/{BUNDLE}")
    await visitor.does("PUT", f"{there}/0x1")  # a topic may be called so
