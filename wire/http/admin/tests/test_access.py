"""Who may do what, and why; one permission more or less."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.tests.visitor import Visitor, visiting

TOPIC = "/admin/v2/persistent/public/default/t"
NAMESPACE = "/admin/v2/namespaces/public/default"
FULL = "persistent://public/default/t"
ROOT = {"authorization": "Bearer root"}


@pytest.fixture
async def root() -> AsyncIterator[Visitor]:
    async with visiting(access=guarded(superusers=["root"])) as visitor:
        yield visitor


async def ask(root: Visitor, method: str, path: str) -> httpx.Response:
    return await root.ask(method, path, headers=ROOT)


async def verdict(root: Visitor, query: str) -> tuple[bool, str]:
    found = await root.get(f"{TOPIC}/access?{query}", headers=ROOT)
    return found["allowed"], found["rule"]


async def test_permissions_come_and_go_one_by_one(root: Visitor) -> None:
    assert await verdict(root, "role=ali&action=produce") == (False, "no rule allows it")
    for action in ("produce", "consume", "produce"):
        assert (await ask(root, "PUT", f"{TOPIC}/access/ali/{action}")).status_code == 204
    assert await root.get(f"{TOPIC}/permissions", headers=ROOT) == {"ali": ["consume", "produce"]}
    rule = f"the permission produce of topic {FULL}"
    assert await verdict(root, "role=ali&action=produce") == (True, rule)
    assert await verdict(root, "role=ali&action=write") == (True, rule)
    assert await verdict(root, "role=bob&role=ali&action=produce") == (True, rule)
    assert (await ask(root, "DELETE", f"{TOPIC}/access/ali/produce")).status_code == 204
    assert await verdict(root, "role=ali&action=produce") == (False, "no rule allows it")
    assert (await ask(root, "DELETE", f"{TOPIC}/access/ali/consume")).status_code == 204
    assert await root.get(f"{TOPIC}/permissions", headers=ROOT) == {}


async def test_of_namespaces(root: Visitor) -> None:
    assert (await ask(root, "PUT", f"{NAMESPACE}/access/ali/consume")).status_code == 204
    assert await root.get(f"{NAMESPACE}/permissions", headers=ROOT) == {"ali": ["consume"]}
    found = await verdict(root, "role=ali&action=consume&subscription=s")
    assert found == (True, "the permission consume of namespace public/default")
    auth = f"{NAMESPACE}/permissions/subscription/s"
    assert (await root.ask("POST", auth, ["bob"], headers=ROOT)).status_code == 204
    found = await verdict(root, "role=ali&action=consume&subscription=s")
    assert found == (False, "subscription s is for other roles")
    assert (await ask(root, "DELETE", f"{NAMESPACE}/access/ali/consume")).status_code == 204
    assert await root.get(f"{NAMESPACE}/permissions", headers=ROOT) == {}


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (f"{TOPIC}/access", "role is missing: whom is it about?"),
        (f"{TOPIC}/access?role=", "role is missing: whom is it about?"),
        (
            f"{TOPIC}/access?role=a&action=all",
            "action is 'all': it must be one of produce, consume",
        ),
    ],
)
async def test_mistakes(root: Visitor, path: str, sentence: str) -> None:
    response = await ask(root, "GET", path)
    assert response.status_code == 400
    assert response.json()["reason"].startswith(sentence)
    response = await ask(root, "PUT", f"{TOPIC}/access/ali/write")
    assert "'write': it must be one of produce" in response.json()["reason"]


async def test_authorisation_is_off(visitor: Visitor) -> None:
    found = await visitor.get(f"{TOPIC}/access?role=ali&action=produce")
    assert found == {
        "allowed": True,
        "rule": "authorisation is off: everybody may do everything",
    }


GRANT = "/admin/v2/namespaces/grantPermissionsOnTopics"
REVOKE = "/admin/v2/namespaces/revokePermissionsOnTopics"


async def test_permissions_of_several_topics_at_once(root: Visitor) -> None:
    grants = [
        {"topic": FULL, "role": "ali", "actions": ["produce", "consume"]},
        {"topic": "public/default/u", "role": "bob", "actions": ["consume"]},
    ]
    await root.does("POST", GRANT, grants, headers=ROOT)
    assert await root.get(f"{TOPIC}/permissions", headers=ROOT) == {"ali": ["consume", "produce"]}
    other = TOPIC.removesuffix("t") + "u/permissions"
    assert await root.get(other, headers=ROOT) == {"bob": ["consume"]}
    await root.does("POST", REVOKE, [{"topic": FULL, "role": "ali"}], headers=ROOT)
    assert await root.get(f"{TOPIC}/permissions", headers=ROOT) == {}
    assert await root.get(other, headers=ROOT) == {"bob": ["consume"]}


async def test_permissions_of_several_topics_ask_for_their_tenant(root: Visitor) -> None:
    tenant = {"adminRoles": ["ali"], "allowedClusters": ["standalone"]}
    await root.does("PUT", "/admin/v2/tenants/of-ali", tenant, headers=ROOT)
    await root.does("PUT", "/admin/v2/namespaces/of-ali/n", headers=ROOT)
    ali = {"authorization": "Bearer ali"}
    own = {"topic": "of-ali/n/a", "role": "bob", "actions": ["produce"]}
    await root.does("POST", GRANT, [own], headers=ali)
    for path in (GRANT, REVOKE):
        both = await root.ask("POST", path, [own, {"topic": FULL, "role": "bob"}], headers=ali)
        assert both.status_code == 403, both.text


async def test_a_shadow_needs_the_administrator_of_its_source(root: Visitor) -> None:
    tenant = {"adminRoles": ["ali"], "allowedClusters": ["standalone"]}
    await root.does("PUT", "/admin/v2/tenants/of-ali", tenant, headers=ROOT)
    await root.does("PUT", "/admin/v2/namespaces/of-ali/n", headers=ROOT)
    here, shown = "/admin/v2/persistent/of-ali/n", {"PULSAR.SHADOW_SOURCE": FULL}
    ali = {"authorization": "Bearer ali"}
    for path, body in (
        (f"{here}/shadow", shown),
        (f"{here}/shadow", {"PULSAR.SHADOW_SOURCE": "public/default/missing"}),
        (f"{here}/parted/partitions", {"partitions": 2, "properties": shown}),
    ):
        found = await root.ask("PUT", path, body, headers=ali)
        assert found.status_code == 403, found.text
    assert await root.get(here, headers=ROOT) == []
    await root.does("PUT", f"{here}/own", headers=ali)
    own = {"PULSAR.SHADOW_SOURCE": "persistent://of-ali/n/own"}
    await root.does("PUT", f"{here}/shadow", own, headers=ali)


async def test_permissions_of_several_topics_that_cannot_be(root: Visitor) -> None:
    one = {"topic": FULL, "role": "ali", "actions": ["produce"]}
    for body in (
        [], None, {}, [5], [{"topic": FULL}], [one, {**one, "actions": ["fly"]}],
        [one, {**one, "topic": "pulsar/system/a"}],
    ):  # fmt: skip
        response = await root.ask("POST", GRANT, body, headers=ROOT)
        assert response.status_code == 400, (body, response.text)
    response = await root.ask("POST", GRANT, [{**one, "topic": "public/missing/a"}], headers=ROOT)
    assert response.status_code == 404
    assert await root.get(f"{TOPIC}/permissions", headers=ROOT) == {}
