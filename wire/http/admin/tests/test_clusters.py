"""Clusters."""

import pytest

from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/clusters"


async def test_a_cluster_comes_changes_and_goes(visitor: Visitor) -> None:
    data = {"serviceUrl": "http://a:8080", "brokerServiceUrl": "pulsar://a:6650", "more": 1}
    await visitor.does("PUT", f"{HERE}/a", data)
    assert await visitor.get(HERE) == ["a", "standalone"]
    assert await visitor.get(f"{HERE}/a") == data
    await visitor.fails(409, "PUT", f"{HERE}/a", data)
    await visitor.does("POST", f"{HERE}/a", {"serviceUrl": "http://b"})
    assert await visitor.get(f"{HERE}/a") == {"serviceUrl": "http://b"}
    await visitor.does("DELETE", f"{HERE}/a")
    await visitor.fails(404, "GET", f"{HERE}/a")
    await visitor.fails(404, "POST", f"{HERE}/a", data)


async def test_peers_are_kept_beside_the_rest(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a", {"serviceUrl": "http://a"})
    await visitor.does("POST", f"{HERE}/a/peers", ["standalone"])
    assert await visitor.get(f"{HERE}/a/peers") == ["standalone"]
    assert (await visitor.get(f"{HERE}/a"))["serviceUrl"] == "http://a"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (["standalone", "A"], "A itself can't be part of peer-list"),
        (["standalone", "b"], "Peer cluster b does not exist"),
        ([""], "Peer cluster  does not exist"),
    ],
)
async def test_peers_are_other_clusters(visitor: Visitor, sent: list[str], why: str) -> None:
    await visitor.does("PUT", f"{HERE}/a", {"serviceUrl": "http://a"})
    assert await visitor.fails(412, "POST", f"{HERE}/a/peers", sent) == why
    assert await visitor.get(f"{HERE}/a/peers") == []


@pytest.mark.parametrize("body", [b"[]", b"null", b""])
async def test_no_peers_are_sent(visitor: Visitor, body: bytes) -> None:
    await visitor.does("PUT", f"{HERE}/a", {"serviceUrl": "http://a"})
    await visitor.does("POST", f"{HERE}/a/peers", ["standalone"])
    headers = {"content-type": "application/json"}
    answer = await visitor.ask("POST", f"{HERE}/a/peers", content=body, headers=headers)
    assert answer.status_code == 204
    assert await visitor.get(f"{HERE}/a/peers") == []
    assert (await visitor.get(f"{HERE}/a"))["serviceUrl"] == "http://a"


async def test_nothing_is_isolated(visitor: Visitor) -> None:
    assert await visitor.get(f"{HERE}/standalone/failureDomains") == {}
    assert await visitor.get(f"{HERE}/standalone/namespaceIsolationPolicies") == {}
    await visitor.fails(404, "GET", f"{HERE}/nowhere/failureDomains")
