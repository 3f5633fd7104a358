"""A request about a peer's topic is sent there as it came."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.errors import NotOwned
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.redirect import location
from magnetar.wire.http.tests.visitor import visiting

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
