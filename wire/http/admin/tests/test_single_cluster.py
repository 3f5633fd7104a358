"""What a server alone answers to questions about others."""

import zlib

import pytest

from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.tests.visitor import Visitor

CLUSTER = "/admin/v2/clusters/standalone"
SPACE = "/admin/v2/namespaces/public/default"
TOPIC = "/admin/v2/persistent/public/default/a"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{CLUSTER}/migrate"),
        ("POST", f"{CLUSTER}/failureDomains/d"),
        ("POST", f"{CLUSTER}/namespaceIsolationPolicies/p"),
        ("POST", f"{SPACE}/persistence/bookieAffinity"),
        ("POST", f"{SPACE}/migration"),
        ("POST", f"{SPACE}/entryFilters"),
        ("POST", f"{SPACE}/allowedTopicPropertyKeysForMetrics"),
        ("GET", f"{SPACE}/scanOffloadedLedgers"),
        ("GET", f"{TOPIC}/backlog"),
        ("POST", f"{TOPIC}/entryFilters"),
    ],
)
async def test_what_would_need_others_is_refused(visitor: Visitor, method: str, path: str) -> None:
    assert await visitor.fails(405, method, path, {"a": "b"})


@pytest.mark.parametrize(
    "path",
    [
        *(f"{SPACE}/entryFilters", f"{TOPIC}/entryFilters"),
        f"{SPACE}/allowedTopicPropertyKeysForMetrics",
    ],
)
async def test_it_is_not_set_and_may_be_removed(visitor: Visitor, path: str) -> None:
    await visitor.does("GET", path)
    await visitor.does("DELETE", path)


async def test_a_cluster_of_one_broker(visitor: Visitor) -> None:
    assert await visitor.get(f"{CLUSTER}/migrate") == {"migrated": False}
    assert await visitor.get(f"{CLUSTER}/namespaceIsolationPolicies/brokers") == []
    of_one = await visitor.get(f"{CLUSTER}/namespaceIsolationPolicies/brokers/b:1")
    assert (of_one["brokerName"], of_one["namespaceRegex"]) == ("b:1", [])
    await visitor.fails(404, "GET", f"{CLUSTER}/failureDomains/d")
    await visitor.fails(404, "GET", f"{CLUSTER}/namespaceIsolationPolicies/p")
    await visitor.fails(404, "GET", "/admin/v2/clusters/other/migrate")
    await visitor.fails(404, "GET", f"{SPACE}/persistence/bookieAffinity")
    await visitor.fails(404, "GET", "/admin/v2/namespaces/public/other/entryFilters")


async def test_groups_of_namespaces(visitor: Visitor) -> None:
    group = "/admin/namespaces/standalone/antiAffinity/g?property=public"
    assert await visitor.get(group) == []
    await visitor.does("POST", f"{SPACE}/antiAffinity", b"g")
    assert await visitor.get(group) == ["public/default"]
    assert await visitor.get(group.replace("=public", "=")) == ["public/default"]
    assert await visitor.get(group.replace("/admin/", "/admin/v2/")) == ["public/default"]
    await visitor.fails(404, "GET", group.replace("=public", "=nobody"))


async def test_where_topics_fall(visitor: Visitor) -> None:
    await visitor.topic("a")
    name = "persistent://public/default/a"
    found = await visitor.get(f"{SPACE}/{BUNDLE}/topicHashPositions")
    assert found["hashPositions"] == {name: zlib.crc32(name.encode())}
    requested = await visitor.get(f"{SPACE}/{BUNDLE}/topicHashPositions?topics={name},b")
    assert set(requested["hashPositions"]) == {name, "persistent://public/default/b"}
    await visitor.fails(404, "GET", f"{SPACE}/0x0_0x1/topicHashPositions")


async def test_a_subscription_is_here_only(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    subscription = await topic.subscription("s")
    subscription.replicated = True  # a client may ask for it when it subscribes
    status = f"{TOPIC}/subscription/s/replicatedSubscriptionStatus"
    assert await visitor.get(status) == {topic.name.full: True}
    await visitor.does("POST", status, False)
    assert await visitor.get(status) == {topic.name.full: False}
    await visitor.fails(405, "POST", status, True)
    await visitor.fails(404, "GET", f"{TOPIC}/subscription/x/replicatedSubscriptionStatus")
