"""A request about a peer's topic is sent there as it came."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.errors import NotOwned
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.redirect import location
from magnetar.wire.http.tests.visitor import Visitor, visiting

STATS = "/admin/v2/persistent/public/default/theirs%2Fx/stats"


@pytest.mark.parametrize(
    ("addresses", "scheme", "query", "target"),
    [
        ({"http": "b:1"}, "http", b"", f"http://b:1{STATS}"),
        ({"http": "b:1", "https": "b:2"}, "https", b"a=%20", f"https://b:2{STATS}?a=%20"),
        ({"http": "b:1"}, "https", b"", None),
        ({}, "http", b"", None),
    ],
)
def test_the_path_stays_as_it_was_sent(
    addresses: dict[str, str], scheme: str, query: bytes, target: str | None
) -> None:
    scope = {
        "type": "http",
        "scheme": scheme,
        "path": "/decoded",
        "raw_path": STATS.encode(),
        "query_string": query,
    }
    assert location(NotOwned("elsewhere", addresses), Request(scope)) == target


async def test_what_is_done_with_a_peers_topic_is_done_there() -> None:
    peer, unreachable = Peer(7, {"http": "b:8080"}), Peer(8)
    table = OwnershipTable(peer, unreachable)
    async with visiting(ownership=table) as visitor:
        for name, owner in (("theirs", peer), ("lost", unreachable)):
            await visitor.topic(name)
            await visitor.broker.unload(TopicName.parse(name))
            table.topics[TopicName.parse(name).full] = owner
        path = "/admin/v2/persistent/public/default/theirs/terminate"
        response = await visitor.ask("POST", path)
        assert (response.status_code, response.headers["location"]) == (307, f"http://b:8080{path}")
        await visitor.fails(503, "POST", path.replace("theirs", "lost"))
        assert visitor.broker.topics == {}


PEER = Peer(7, {"http": "b:8080"})
SPACE = "/admin/v2/persistent/public/default"


async def elsewhere(visitor: Visitor, table: OwnershipTable, *names: str) -> None:
    """Give these topics to the peer."""
    for name in names:
        topic = TopicName.parse(name)
        await visitor.broker.unload(topic)
        table.topics[topic.full] = PEER


async def redirected(visitor: Visitor, method: str, path: str, body: object = None) -> None:
    response = await visitor.ask(method, path, body)
    found = (response.status_code, response.headers.get("location"))
    assert found == (307, f"http://b:8080{path}"), (path, response.text)


async def test_state_of_a_peers_topic_is_read_and_changed_there() -> None:
    table = OwnershipTable(PEER)
    async with visiting(ownership=table) as visitor:
        await visitor.topic("t")
        await elsewhere(visitor, table, "t", "non-persistent://public/default/v")
        for path in (
            *("stats", "internalStats", "internal-info", "lastMessageId", "subscriptions"),
            *("subscription/s/position/1", "ledger/0/entry/0", "properties", "retention"),
            *("compaction", "maxConsumers"),
        ):
            await redirected(visitor, "GET", f"{SPACE}/t/{path}")
        for method, path in (
            *(("DELETE", "t"), ("PUT", "t/unload"), ("PUT", "t/subscription/s")),
            *(("DELETE", "t/truncate"), ("POST", "t/trim"), ("POST", "t/messageTTL")),
        ):
            await redirected(visitor, method, f"{SPACE}/{path}")
        volatile = SPACE.replace("persistent", "non-persistent")
        await redirected(visitor, "GET", f"{volatile}/v/maxConsumers")
        await redirected(visitor, "PUT", f"{volatile}/v")
        assert visitor.broker.topics == {}


async def test_partitions_of_several_owners_are_not_sent_back_and_forth() -> None:
    table = OwnershipTable(PEER)
    async with visiting(ownership=table) as visitor:
        await elsewhere(visitor, table, "p-partition-1")
        await visitor.does("PUT", f"{SPACE}/p/partitions", 2)
        assert list(visitor.broker.topics) == ["persistent://public/default/p-partition-0"]
        several = (
            *(("GET", f"{SPACE}/p/partitioned-stats"), ("DELETE", f"{SPACE}/p/partitions")),
            *(("PUT", f"{SPACE}/p/subscription/s"), ("POST", f"{SPACE}/p/terminate/partitions")),
            ("POST", "/admin/v2/namespaces/public/default/clearBacklog"),
        )
        for method, path in several:
            assert "several owners" in await visitor.fails(405, method, path)
        await elsewhere(visitor, table, "p-partition-0")
        for method, path in several:
            await redirected(visitor, method, path)
        assert (await visitor.get(f"{SPACE}/p/partitions"))["partitions"] == 2
