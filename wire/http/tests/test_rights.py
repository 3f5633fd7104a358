"""Who may ask for which path: every row of every table is tried."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from msgspec.structs import replace

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.admin import tables
from magnetar.wire.http.endpoints import (
    health,
    landing_page,
    lookup,
    metrics_page,
    scram_users,
    sessions,
)
from magnetar.wire.http.rights import DEMANDS, SOMEWHERE, Needs
from magnetar.wire.http.routes import NotHere, Row
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

PEOPLE = ("admin", "maker", "reader", "other")
"""Who administers `public`, and who has which permission of `public/default`."""
MAY = {
    Needs.SUPERUSER: (),
    Needs.TENANT_ADMIN: ("admin",),
    Needs.TENANTS_ADMIN: ("admin", "maker", "reader", "other", "stranger"),
    Needs.NAMESPACE: ("admin", "maker", "reader", "other"),
    Needs.TOPIC: ("admin", "maker", "reader", "other"),
    Needs.CONSUMER: ("admin", "reader"),
    Needs.PRODUCER: ("admin", "maker"),
    Needs.SUBJECT: ("admin", "maker", "reader", "other"),
    Needs.SUBJECT_WRITER: ("admin", "maker"),
    Needs.READER: ("admin", "reader"),
    Needs.WRITER: ("admin", "maker"),
    Needs.IDENTITY: ("admin", "maker", "reader", "other", "stranger"),
    Needs.METRICS: ("admin", "maker", "reader", "other", "stranger"),
    Needs.OPEN: ("admin", "maker", "reader", "other", "stranger", ""),
    Needs.HEALTH: ("admin", "maker", "reader", "other", "stranger", ""),
}
PARTS = {
    "tenant": "public", "namespace": "default", "topic": "t", "subscription": "s", "role": "r",
    "bundle": lookup.BUNDLE, "count": "1", "seconds": "1", "timestamp": "1", "position": "1",
    "ledger": "1", "entry": "1", "version": "1",
    "subject": "t-value", "user": "u", "mechanism": "SCRAM-SHA-256",
}  # fmt: skip


def all_rows() -> Iterator[tuple[str, Row]]:
    """Every row with its mount."""
    for table in (landing_page.ROUTES, metrics_page.ROUTES, health.ROUTES):
        for row in table:
            yield "", row
    mounts = {
        **lookup.TABLES,
        **sessions.TABLES,
        **scram_users.TABLES,
        **tables.tables(levels_of(Effective)),
    }
    for mount, table in mounts.items():
        for row in table:
            yield mount, row


def path_of(mount: str, row: Row) -> str:
    name = re.sub(r"\{(\w+)(?::path)?\}", lambda found: PARTS.get(found[1], "x"), row[1])
    return f"{mount}{name}" or "/"


ROWS = list(all_rows())


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"} if name else {}


@pytest.fixture
async def secured() -> AsyncIterator[Visitor]:
    async with visiting(access=guarded(superusers=["root"])) as visitor:
        yield visitor


async def test_what_is_asked_for_is_known() -> None:
    assert {
        *DEMANDS,
        *SOMEWHERE,
        Needs.TENANTS_ADMIN,
        Needs.OPEN,
        Needs.IDENTITY,
        Needs.METRICS,
        Needs.HEALTH,
        Needs.OF_BOOKIE,
    } == set(Needs)
    assert all(isinstance(row[3], Needs) for _mount, row in ROWS)
    assert not [row for _mount, row in ROWS if row[3] is Needs.OF_BOOKIE]
    assert len(ROWS) > 300


def test_the_documentation_names_each_need() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/admin.md").read_text(encoding="utf-8")
    section = text.partition("\n## Rights\n")[2].partition("\n## ")[0]
    needs = set(re.findall(r"^\| .* \| ([^|]+) \|$", section, re.MULTILINE)) - {"need"}
    assert needs == {each.value for each in Needs} - {Needs.OF_BOOKIE.value}


async def _permit(visitor: Visitor) -> None:
    permissions = visitor.broker.access.judge
    assert permissions is not None
    root = bearer("root")
    tenant = {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}
    await visitor.does("POST", "/admin/v2/tenants/public", tenant, headers=root)
    path = "/admin/v2/namespaces/public/default/permissions"
    for role, action in (("maker", "produce"), ("reader", "consume"), ("other", "sinks")):
        await visitor.does("POST", f"{path}/{role}", [action], headers=root)


async def test_every_row_asks_for_its_right(secured: Visitor) -> None:
    """Whether a request goes beyond its right is seen by its status: a handler may answer anything
    but 401 and 403. No handler is let run that needs a body or changes what later rows need.
    """
    await _permit(secured)
    for mount, row in ROWS:
        methods, _path, _handler, right = row
        for method in methods.split():
            where = path_of(mount, row)
            for name in ("", "stranger", *PEOPLE):
                if name in MAY[right] and method != "GET":
                    continue  # it would be carried out
                response = await secured.ask(method, where, headers=bearer(name))
                refused = response.status_code in (401, 403)
                assert refused is (name not in MAY[right]), (method, where, name, response.text)
                if refused:
                    assert response.status_code == (403 if name else 401), (method, where, name)


async def test_who_is_not_known_is_told_how_to_authenticate(secured: Visitor) -> None:
    path = "/admin/v2/tenants"
    for headers in (
        {}, bearer(" "), {"authorization": "Basic !"}, {"authorization": "Digest x"},
        {"authorization": "Basic Ym9iOndyb25n"}, {"authorization": "Bearer"},
    ):  # fmt: skip
        response = await secured.ask("GET", path, headers=headers)
        assert response.status_code == 401, headers
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert set(response.json()) == {"reason"}
    assert (await secured.client.get(path, auth=("root", "secret"))).status_code == 200
    assert "public" in await secured.get(path, headers=bearer("root"))


async def test_what_is_permitted_is_in_force_when_it_is_answered(secured: Visitor) -> None:
    root, bob = bearer("root"), bearer("bob")
    path = "/admin/v2/namespaces/public/default"

    async def status() -> int:
        return (await secured.ask("GET", f"{path}/topics", headers=bob)).status_code

    for _ in range(3):
        assert await status() == 403
        await secured.does("POST", f"{path}/permissions/bob", ["consume"], headers=root)
        assert await status() == 200
        await secured.does("DELETE", f"{path}/permissions/bob", headers=root)
    tenant = {"adminRoles": ["bob"], "allowedClusters": ["standalone"]}
    await secured.does("PUT", "/admin/v2/tenants/of-bob", tenant, headers=root)
    await secured.does("PUT", "/admin/v2/namespaces/of-bob/n", headers=bob)
    assert await secured.get("/admin/v2/namespaces/of-bob", headers=bob) == ["of-bob/n"]


async def test_a_subscription_may_be_for_others(secured: Visitor) -> None:
    root = bearer("root")
    await _permit(secured)
    path = "/admin/v2/namespaces/public/default/permissions/subscription/s"
    await secured.does("POST", path, ["somebody"], headers=root)
    topic = "/admin/v2/persistent/public/default/t"
    await secured.does("PUT", topic, headers=root)
    for subscription, allowed in (("s", False), ("mine", True)):
        where = f"{topic}/subscription/{subscription}"
        response = await secured.ask("PUT", where, headers=bearer("reader"))
        assert (response.status_code == 204) is allowed, response.text


async def test_readers_ask_for_each_topic(secured: Visitor) -> None:
    await _permit(secured)
    await secured.does("PUT", "/admin/v2/persistent/public/default/t", headers=bearer("root"))
    names: list[dict[str, Any]] = [
        {"topics": ["persistent://public/default/t"]}, {"topics": ["public/other/t"]}
    ]  # fmt: skip
    for body, status in zip(names, (200, 403), strict=True):
        response = await secured.ask(
            "POST", "/admin/v2/reading/topics", body, headers=bearer("reader")
        )
        assert response.status_code == status, response.text


async def test_an_anonymous_client_lacks_an_identity_and_not_a_right() -> None:
    async with visiting(access=guarded(anonymous=Identity("nobody"))) as visitor:
        assert (await visitor.ask("GET", "/admin/v2/brokers/version")).status_code == 200
        assert (await visitor.ask("GET", "/admin/v2/tenants")).status_code == 401


async def test_metrics_may_be_open() -> None:
    options = replace(OPTIONS, open_paths=frozenset(["/metrics"]))
    async with visiting(options, access=guarded()) as visitor:
        assert (await visitor.ask("GET", "/metrics")).status_code == 200
        assert (await visitor.ask("GET", "/admin/v2/brokers/version")).status_code == 401


def weakest(method: str, path: str) -> set[Needs]:
    """What a row may need, by a model that knows nothing of the tables: whatever changes something
    of a tenant is for its administrator, or of a subscription for its consumer, and everything else
    that changes something for superusers.
    """
    parts = path.strip("/").split("/")
    if method in ("GET", "HEAD"):
        return set(Needs) - {Needs.OF_BOOKIE}
    if parts[:3] == ["admin", "v3", "transactions"]:
        return {Needs.SUPERUSER}
    if parts[0] in ("subjects", "compatibility", "config", "mode"):
        asks = {Needs.SUBJECT_WRITER, Needs.SUBJECT} if method == "POST" else set()
        return {Needs.SUPERUSER} | asks
    if parts[:2] != ["admin", "v2"]:
        return set()
    kind, rest = parts[2], parts[3:]
    if kind in ("reading", "writing"):
        return {Needs.READER, Needs.WRITER}
    if kind == "session":
        return {Needs.IDENTITY}
    if kind == "namespaces" and rest[-1].endswith("PermissionsOnTopics"):
        return {Needs.TENANTS_ADMIN}
    if kind in ("namespaces", "mqtt"):
        return {Needs.SUPERUSER, Needs.TENANT_ADMIN}
    if kind == "schemas":
        asks = {("POST", "schema"): Needs.PRODUCER, ("POST", "version"): Needs.TOPIC}
        return {Needs.SUPERUSER, Needs.TENANT_ADMIN, asks.get((method, rest[-1]), Needs.SUPERUSER)}
    if kind in ("persistent", "non-persistent"):
        asks = rest[3:4] and rest[3] in CONSUMERS
        return {Needs.SUPERUSER, Needs.TENANT_ADMIN} | ({Needs.CONSUMER} if asks else set())
    return {Needs.SUPERUSER}


CONSUMERS = (
    *("subscription", "subscriptions", "all_subscription", "messageid", "backlogSize"),
    *("examinemessage", "lastMessageId", "ledger"),
)


def test_no_row_needs_less_than_a_simple_model_says() -> None:
    """The other tests take what a row needs from the row."""
    weak = [
        (method, path_of(mount, row), row[3])
        for mount, row in ROWS
        for method in row[0].split()
        if not isinstance(row[2], NotHere) and row[3] not in weakest(method, path_of(mount, row))
    ]
    assert weak == []


async def test_health_may_be_closed() -> None:
    options = replace(OPTIONS, open_paths=frozenset())
    async with visiting(options, access=guarded()) as visitor:
        for path in ("/healthz", "/readyz", "/admin/v2/brokers/ready"):
            assert (await visitor.ask("GET", path)).status_code == 401
            assert (await visitor.ask("GET", path, headers=bearer("eve"))).status_code == 200


async def test_the_landing_page_shows_nothing_private(secured: Visitor) -> None:
    found = await secured.get("/")
    assert found["listeners"] == {}
    assert "trouble" not in found
    page = await secured.ask("GET", "/", headers={"accept": "text/html"})
    assert "6650" not in page.text


async def test_a_proxy_says_for_whom_it_speaks() -> None:
    options = replace(OPTIONS, proxy_roles=frozenset(["proxy"]))
    async with visiting(options, access=guarded(superusers=["root", "proxy"])) as visitor:
        await _permit(visitor)
        path, reading = "/admin/v2/namespaces/public/default/topics", "/admin/v2/reading/topics"
        for name, original, status in (
            ("proxy", "reader", 200), ("proxy", "stranger", 403), ("proxy", "", 403),
            ("proxy", "proxy", 403), ("reader", "root", 403),
        ):  # fmt: skip
            headers = {**bearer(name), "x-original-principal": original}
            for method, where in (("GET", path), ("POST", reading)):
                response = await visitor.ask(method, where, headers=headers)
                assert response.status_code == status, (name, original, response.text)


async def test_credentials_are_ignored_where_nobody_is_asked(visitor: Visitor) -> None:
    response: httpx.Response = await visitor.ask(
        "GET", "/admin/v2/tenants", headers={"authorization": "Digest x"}
    )
    assert response.status_code == 200
    assert get_args(Row)[3] is Needs


@pytest.mark.parametrize("scheme", ["", "Bearer ", "Basic "])
async def test_noise_is_no_identity(secured: Visitor, scheme: str) -> None:
    noises = ("", "=", "\xff\xfe", "a" * 10_000, "Og==", "/w==", ":", "\u0000", "AA==", "a b c")
    for noise in noises:
        header = (scheme + noise).encode("utf-8")
        response = await secured.ask("GET", "/admin/v2/tenants", headers={b"authorization": header})
        assert response.status_code in (401, 403), noise
