"""Resource groups over REST, with the statuses and messages of Apache's broker."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import trio

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.http.tests.visitor import Visitor

GROUPS = "/admin/v2/resourcegroups"
SPACE = "/admin/v2/namespaces/public/default"
UNKNOWN = "ResourceGroup does not exist"
NONE = {
    "publishRateInMsgs": -1,
    "publishRateInBytes": -1,
    "dispatchRateInMsgs": -1,
    "dispatchRateInBytes": -1,
}


async def test_a_group_is_created_changed_and_deleted(visitor: Visitor) -> None:
    assert await visitor.get(GROUPS) == []
    await visitor.does("PUT", f"{GROUPS}/g", {"publishRateInMsgs": 5})
    assert await visitor.get(f"{GROUPS}/g") == {**NONE, "publishRateInMsgs": 5}
    await visitor.does("PUT", f"{GROUPS}/g", {"dispatchRateInBytes": 1 << 40})
    changed = {**NONE, "publishRateInMsgs": 5, "dispatchRateInBytes": 1 << 40}
    assert await visitor.get(f"{GROUPS}/g") == changed
    await visitor.does("PUT", f"{GROUPS}/g", {"publishRateInMsgs": -1, "dispatchRateInMsgs": None})
    assert await visitor.get(f"{GROUPS}/g") == {**changed, "publishRateInMsgs": -1}
    await visitor.does("PUT", f"{GROUPS}/plain", {})
    assert await visitor.get(f"{GROUPS}/plain") == NONE
    assert await visitor.get(GROUPS) == ["g", "plain"]
    await visitor.does("DELETE", f"{GROUPS}/g")
    assert await visitor.get(GROUPS) == ["plain"]
    for method in ("GET", "DELETE"):
        assert await visitor.fails(404, method, f"{GROUPS}/g") == UNKNOWN
    await visitor.fails(405, "POST", f"{GROUPS}/g", {})


@pytest.mark.parametrize(
    "body",
    [
        *(None, b"", b"null", b"{", b"[]", b'"g"', b"7", b"\xff", b"[" * 5_000),
        {"publishRateInMsgs": "many"},
        {"publishRateInMsgs": [5]},
        {"publishRateInMsgs": {"a": 5}},
        {"publishRateInMsgs": 1 << 31},
        {"publishRateInBytes": 1 << 63},
        {"dispatchRateInMsgs": -(1 << 40)},
    ],
)
async def test_a_body_that_is_no_group(visitor: Visitor, body: Any) -> None:
    await visitor.fails(400, "PUT", f"{GROUPS}/g", body)
    assert await visitor.get(GROUPS) == []


async def test_numbers_are_read_as_java_reads_them(visitor: Visitor) -> None:
    """As seen with Apache's broker 4.2.4. Newer ones have a rate for replication."""
    body = {"publishRateInMsgs": "5", "replicationDispatchRateInMsgs": 7, "x": []}
    await visitor.does("PUT", f"{GROUPS}/g", body)
    assert await visitor.get(f"{GROUPS}/g") == {**NONE, "publishRateInMsgs": 5}
    body = {"publishRateInMsgs": 1.5, "publishRateInBytes": "", "dispatchRateInMsgs": -7}
    await visitor.does("PUT", f"{GROUPS}/g", body)
    changed = {**NONE, "publishRateInMsgs": 1, "dispatchRateInMsgs": -7}
    assert await visitor.get(f"{GROUPS}/g") == changed


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a/b", "..", ".", " ", "x" * 5_000])
async def test_hostile_names(visitor: Visitor, name: str) -> None:
    path = f"{GROUPS}/{quote(name, safe='').replace('.', '%2E')}"
    await visitor.fails(412, "PUT", path, {"publishRateInMsgs": 5})
    for method in ("GET", "DELETE"):
        assert await visitor.fails(404, method, path) == UNKNOWN
    put_into = f"{SPACE}/resourcegroup/{quote(name, safe='').replace('.', '%2E')}"
    assert await visitor.fails(412, "POST", put_into) == UNKNOWN
    assert await visitor.get(GROUPS) == []


@pytest.mark.parametrize("name", ["x" * 3_000, "group one", "Köln", "a?b#c"])
async def test_names_as_apaches_broker_has_them(visitor: Visitor, name: str) -> None:
    path = quote(name, safe="")
    await visitor.does("PUT", f"{GROUPS}/{path}", {})
    await visitor.does("POST", f"{SPACE}/resourcegroup/{path}")
    assert (await visitor.ask("GET", f"{SPACE}/resourcegroup")).text == name
    assert await visitor.get(GROUPS) == [name]


async def test_a_namespace_is_put_into_a_group(visitor: Visitor) -> None:
    await visitor.does("GET", f"{SPACE}/resourcegroup")
    assert await visitor.fails(412, "POST", f"{SPACE}/resourcegroup/g") == UNKNOWN
    await visitor.does("PUT", f"{GROUPS}/g", {"publishRateInMsgs": 5})
    topic = await visitor.topic("a")
    await visitor.does("POST", f"{SPACE}/resourcegroup/g")
    answer = await visitor.ask("GET", f"{SPACE}/resourcegroup")
    assert (answer.text, answer.headers["content-type"].split(";")[0]) == ("g", "text/plain")
    assert (await visitor.get(SPACE))["resource_group_name"] == "g"
    assert [each.limit.messages for each in topic.throttles.publish] == [5]
    assert await visitor.fails(412, "DELETE", f"{GROUPS}/g") == "ResourceGroup is in use"
    await visitor.does("DELETE", f"{SPACE}/resourcegroup")
    await visitor.does("DELETE", f"{SPACE}/resourcegroup")
    assert topic.throttles.publish == ()
    await visitor.does("GET", f"{SPACE}/resourcegroup")
    other = "/admin/v2/namespaces/public/other/resourcegroup"
    for method, path in (("GET", other), ("DELETE", other), ("POST", f"{other}/g")):
        await visitor.fails(404, method, path)
    await visitor.does("DELETE", f"{GROUPS}/g")


async def test_a_namespace_is_created_in_a_group(visitor: Visitor) -> None:
    path, body = "/admin/v2/namespaces/public/new", {"resource_group_name": "g"}
    assert await visitor.fails(412, "PUT", path, body) == UNKNOWN
    await visitor.fails(404, "GET", path)
    await visitor.fails(400, "PUT", path, {"resource_group_name": 7})
    await visitor.does("PUT", f"{GROUPS}/g", {"publishRateInMsgs": 5})
    await visitor.does("PUT", path, body)
    assert (await visitor.ask("GET", f"{path}/resourcegroup")).text == "g"
    await visitor.fails(412, "DELETE", f"{GROUPS}/g")
    await visitor.does("DELETE", path)
    await visitor.does("DELETE", f"{GROUPS}/g")
    await visitor.does("PUT", path, {"resource_group_name": ""})
    await visitor.does("GET", f"{path}/resourcegroup")


async def test_a_group_that_is_deleted_while_a_namespace_is_put_into_it(visitor: Visitor) -> None:
    """One of the two comes first; the other one is refused."""
    for number in range(20):
        await visitor.does("PUT", f"{GROUPS}/g", {})
        statuses = {}

        async def ask(method: str, path: str, into: dict[str, int] = statuses) -> None:
            into[method] = (await visitor.ask(method, path)).status_code

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "POST", f"{SPACE}/resourcegroup/g")
            for _ in range(number):
                await trio.lowlevel.checkpoint()
            nursery.start_soon(ask, "DELETE", f"{GROUPS}/g")
        assert sorted(statuses.values()) == [204, 412]
        policies = await visitor.broker.catalog.policies(NamespaceName.parse("public/default"))
        assert bool(policies.resource_group) == bool(await visitor.get(GROUPS))
        await visitor.does("DELETE", f"{SPACE}/resourcegroup")


async def test_thousands_of_groups(visitor: Visitor) -> None:
    for number in range(10_000):
        await visitor.broker.metadata.put(f"{GROUPS[:6]}/resourcegroups/{number}", b"{}", -1)
    assert len(await visitor.get(GROUPS)) == 10_000
    assert "10000" in await visitor.fails(412, "PUT", f"{GROUPS}/more", {})
    await visitor.does("PUT", f"{GROUPS}/5", {"publishRateInMsgs": 5})
    assert not visitor.broker.groups.live(), "no topic is in any of them"


async def test_what_does_not_store_anything_shares_the_rate(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{GROUPS}/g", {"publishRateInMsgs": 5})
    await visitor.does("POST", f"{SPACE}/resourcegroup/g")
    stored = await visitor.topic("a")
    volatile = await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    for topic in (stored, volatile):
        (share,) = topic.throttles.publish
        share.spend(100, 0)
    assert share.allowance(0)[0] == 5 - 200
