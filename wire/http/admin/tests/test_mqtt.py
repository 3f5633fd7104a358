"""`/admin/v2/mqtt`: requests about a front of MQTT with real sessions."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from magnetar.wire.http.admin.mqtt import TABLE
from magnetar.wire.http.tests.mqtt import Both, both
from magnetar.wire.http.tests.visitor import Visitor
from magnetar.wire.mqtt.tests.peer import V5

__all__ = ["both"]

HERE = "/admin/v2/mqtt/public/default"
SESSIONS, RETAINED, RULES = f"{HERE}/sessions", f"{HERE}/retained", f"{HERE}/rules"
ELSEWHERE = ("/admin/v2/reading", "/admin/v2/writing", "/admin/v3/transactions")
"""Paths in tables of other subjects."""
DOCS = Path(__file__).resolve().parents[4] / "docs/admin.md"


def test_every_path_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(GET|PUT|POST|DELETE) (\S+?)(?:\?\S*)?` \|", text, re.MULTILINE)
    documented = {row for row in rows if not row[1].startswith(ELSEWHERE)}
    served = set()
    for methods, path, *_ in TABLE:
        name = path.replace("/{tenant}/{namespace}", "...") if path else "/admin/v2/mqtt"
        name = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), name)
        served |= {(method, name) for method in methods.split()}
    assert documented == served


async def test_the_namespaces_of_listeners(both: Both) -> None:
    assert await both.visitor.get("/admin/v2/mqtt") == ["public/default"]
    reason = await both.visitor.fails(404, "GET", "/admin/v2/mqtt/public/other/sessions")
    assert reason == "no MQTT listener uses the namespace public/other"


async def test_a_server_without_mqtt(visitor: Visitor) -> None:
    assert await visitor.get("/admin/v2/mqtt") == []
    await visitor.fails(404, "GET", SESSIONS)


async def test_sessions_are_listed_in_pages(both: Both) -> None:
    for name in ("a", "b", "c/d"):
        await both.asleep(name)
    await both.connected("e")
    found = await both.visitor.get(SESSIONS)
    assert [one["clientId"] for one in found["sessions"]] == ["a", "b", "c/d", "e"]
    assert found["next"] is None
    assert found["sessions"][3]["address"] == "1.2.3.4:1"
    first = await both.visitor.get(f"{SESSIONS}?limit=3")
    assert (len(first["sessions"]), first["next"]) == (3, "c/d")
    rest = await both.visitor.get(f"{SESSIONS}?limit=3&after={quote(first['next'])}")
    assert ([one["clientId"] for one in rest["sessions"]], rest["next"]) == (["e"], None)
    asleep = await both.visitor.get(f"{SESSIONS}?state=asleep&prefix=c")
    assert [one["clientId"] for one in asleep["sessions"]] == ["c/d"]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "state=dead"])
async def test_lists_refuse(both: Both, query: str) -> None:
    await both.visitor.fails(400, "GET", f"{SESSIONS}?{query}")


async def test_one_session(both: Both) -> None:
    await both.asleep("c/d")
    found = await both.visitor.get(f"{SESSIONS}/c%2Fd")
    assert (found["clientId"], found["state"], found["address"]) == ("c/d", "asleep", None)
    assert found["subscriptions"] == [
        {"filter": "t", "qos": 1, "noLocal": False, "retainAsPublished": False, "identifier": None}
    ]
    assert [place["backlog"] for place in found["places"]] == [0]
    assert "'x'" in await both.visitor.fails(404, "GET", f"{SESSIONS}/x")


async def test_a_session_is_ended(both: Both) -> None:
    client = await both.connected("d", version=V5)
    await both.visitor.does("DELETE", f"{SESSIONS}/d")
    assert [(one.kind, one.reasons) for one in await client.receive()] == [("DISCONNECT", (0x98,))]
    await both.visitor.fails(404, "DELETE", f"{SESSIONS}/d")


async def test_a_client_is_disconnected(both: Both) -> None:
    client = await both.connected("d", clean=False)
    await both.visitor.does("POST", f"{SESSIONS}/d/disconnect")
    await client.is_cut()
    reason = await both.visitor.fails(412, "POST", f"{SESSIONS}/d/disconnect")
    assert reason == "'d' is not connected"


async def test_a_page_of_another_site_ends_nothing(both: Both) -> None:
    await both.asleep("d")
    foreign = {"origin": "http://evil.example"}
    for method, path in ("DELETE", f"{SESSIONS}/d"), ("POST", f"{SESSIONS}/d/disconnect"):
        response = await both.visitor.ask(method, path, headers=foreign)
        assert response.status_code == 403
    assert (await both.visitor.get(f"{SESSIONS}/d"))["state"] == "asleep"


async def test_retained_messages(both: Both) -> None:
    for topic in ("a/1", "a/2", "b"):
        await both.publish(b"\0value", topic=topic, retain=True)
    assert await both.visitor.get(RETAINED) == {"topics": ["a/1", "a/2", "b"], "next": None}
    found = await both.visitor.get(f"{RETAINED}?filter=a/%23&limit=1")
    assert found == {"topics": ["a/1"], "next": "a/1"}
    found = await both.visitor.get(f"{RETAINED}/a%2F1")
    assert base64.b64decode(found["payload"]) == b"\0value"
    assert (found["topic"], found["qos"], found["publisher"]) == ("a/1", 1, "w")
    await both.visitor.does("DELETE", f"{RETAINED}/a%2F1")
    await both.visitor.fails(404, "GET", f"{RETAINED}/a%2F1")
    await both.visitor.fails(404, "DELETE", f"{RETAINED}/a%2F1")
    for method in ("GET", "DELETE"):
        for filter in ("a/%23/b", "$share/g/a", "a%00"):
            reason = await both.visitor.fails(400, method, f"{RETAINED}?filter={filter}")
            assert reason.startswith("filter: ")
        for topic in ("a%2F%23", "a%00", "%2B"):
            reason = await both.visitor.fails(400, method, f"{RETAINED}/{topic}")
            assert reason.startswith("topic: ")


async def test_retained_messages_are_deleted_by_filter(both: Both) -> None:
    for topic in ("a/1", "a/2", "a/3", "b"):
        await both.publish(b"value", topic=topic, retain=True)
    await both.visitor.fails(400, "DELETE", RETAINED)
    for limit, deleted, more in ((2, 2, True), (2, 1, False)):
        response = await both.visitor.ask("DELETE", f"{RETAINED}?filter=a/%23&limit={limit}")
        assert response.json() == {"deleted": deleted, "more": more}
    assert (await both.visitor.get(RETAINED))["topics"] == ["b"]


async def test_rules(both: Both) -> None:
    rules = [{"filter": "orders/#", "topic": "orders"}, {"filter": "old/#", "topic": "{each}"}]
    assert await both.visitor.get(RULES) == {"rules": [], "configured": True, "version": 0}
    reader = await both.subscribed("r", ("orders/#", 1))
    await both.visitor.does("PUT", RULES, {"rules": rules})
    assert await both.visitor.get(RULES) == {"rules": rules, "configured": False, "version": 1}
    await both.publish(b"x", topic="orders/1")
    assert [one.payload for one in await reader.receive()] == [b"x"]
    assert (await both.visitor.topic("public/default/orders")).messages_in == 1
    await both.visitor.does("PUT", RULES, await both.visitor.get(RULES))
    assert await both.visitor.get(RULES) == {"rules": rules, "configured": False, "version": 2}
    await both.visitor.fails(409, "PUT", RULES, {"rules": [], "version": 0})
    await both.visitor.does("PUT", RULES, {"rules": [], "version": 2})
    await both.visitor.fails(409, "DELETE", f"{RULES}?version=1")
    await both.visitor.does("DELETE", RULES)
    assert await both.visitor.get(RULES) == {"rules": [], "configured": True, "version": 4}


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, {}, "rules are missing"),
        (400, {"rules": [{"filter": "a"}]}, "topic"),
        (
            400,
            {"rules": 1},
            "the body is invalid: Expected `array | null`, got `int`",
        ),
        (400, {"rules": [], "versions": 1}, "unknown field `versions`"),
        (400, {"rules": [{"filter": "a", "topic": "a", "qos": 1}]}, "`qos` - at `$.rules[0]`"),
        (400, {"rules": [{"filter": 1, "topic": "a"}]}, "at `$.rules[0].filter`"),
        (
            412,
            {"rules": [{"filter": "$share/g/a", "topic": "a"}]},
            "rules[0].filter: '$share/g/a'",
        ),
        (412, {"rules": [{"filter": "a/#/b", "topic": "a"}]}, "'a/#/b' is no topic filter"),
        (412, {"rules": [{"filter": "a", "topic": "non-persistent://public/default/a"}]}, "keeps"),
        (412, {"rules": [{"filter": "a", "topic": "a/b/c/d/e"}]}, ""),
        (400, {"rules": [{"filter": "a", "topic": "public/none/a"}]}, "public/none does not exist"),
        (400, {"rules": [{"filter": "a", "topic": "a"}, {"filter": "a", "topic": "b"}]}, "twice"),
    ],
)
async def test_rules_that_cannot_be_followed(
    both: Both, status: int, body: object, reason: str
) -> None:
    assert reason in await both.visitor.fails(status, "PUT", RULES, body)
    assert (await both.visitor.get(RULES))["version"] == 0


async def test_shared_subscriptions(both: Both) -> None:
    await both.subscribed("d", ("$share/g/t", 1), version=V5)
    (found,) = (await both.visitor.get(f"{HERE}/shared-subscriptions"))["sharedSubscriptions"]
    assert (found["name"], found["sessions"], found["connected"]) == ("$share/g/t", 1, 1)
    assert found["members"] == [{"clientId": "d", "address": "1.2.3.4:1", "inFlight": 0}]
