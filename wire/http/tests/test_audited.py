"""Lines of the audit trail about requests over HTTP."""

from __future__ import annotations

import json

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.tests.visitor import visiting

BODY = {"allowedClusters": ["standalone"]}
ROOT = {"authorization": "Bearer root"}


async def test_changes_and_denials() -> None:
    lines: list[bytes] = []
    access = guarded(["root"])
    access.audit = AuditTrail(SystemClock(), lines.append)
    async with visiting(access=access) as visitor:
        where = "/admin/v2/tenants/acme"
        made = await visitor.ask("PUT", where, BODY, headers=ROOT)
        assert made.status_code == 204
        await visitor.ask("GET", where, headers=ROOT)
        again = await visitor.ask("PUT", where, BODY, headers=ROOT)
        assert again.status_code == 409
        eve = {"authorization": "Bearer eve"}
        assert (await visitor.ask("DELETE", where, headers=eve)).status_code == 403
        assert (await visitor.ask("DELETE", where)).status_code == 401
    found = [json.loads(line) for line in lines]
    assert [(one["event"], one["who"]) for one in found] == [
        ("changed", "root"),
        ("changed", "root"),
        ("denied", "eve"),
    ]
    assert (found[0]["operation"], found[0]["outcome"]) == (f"PUT {where}", "status 204")
    assert found[1]["outcome"].startswith("refused: ")
    assert (found[2]["action"], found[2]["resource"]) == ("alter", "server")


async def test_what_only_reads_by_post() -> None:
    """Nor is what a list leaves out a denial."""
    lines: list[bytes] = []
    access = guarded(["root"])
    access.audit = AuditTrail(SystemClock(), lines.append)
    async with visiting(access=access) as visitor:
        sent, shown = {"schema": '"int"'}, {"type": "STRING", "schema": ""}
        made = await visitor.ask("POST", "/subjects/t-value/versions", sent, headers=ROOT)
        assert made.status_code == 200
        lines.clear()
        for path, body, status in (
            ("/subjects/t-value", sent, 200),
            ("/compatibility/subjects/t-value/versions", sent, 200),
            ("/compatibility/subjects/t-value/versions/1", sent, 200),
            ("/admin/v2/schemas/public/default/t/version", shown, 200),
            ("/admin/v2/schemas/public/default/t/compatibility", shown, 500),
        ):
            assert (await visitor.ask("POST", path, body, headers=ROOT)).status_code == status
        listed = await visitor.ask("GET", "/subjects", headers=ROOT)
        assert listed.json() == ["t-value"]
        hidden = await visitor.ask("GET", "/subjects", headers={"authorization": "Bearer eve"})
        assert (hidden.status_code, hidden.json()) == (200, [])
        assert (lines, access.denials) == ([], 0)
        await visitor.ask("DELETE", "/subjects/t-value", headers=ROOT)
    assert len(lines) == 1


async def test_what_is_made_by_requests_that_read() -> None:
    """Once; the same request again makes nothing."""
    lines: list[bytes] = []
    access = guarded(["root"])
    access.audit = AuditTrail(SystemClock(), lines.append)
    here = "/admin/v2/persistent/public/default"
    async with visiting(access=access) as visitor:
        creation = {
            "allowAutoTopicCreation": True,
            "topicType": "partitioned",
            "defaultNumPartitions": 2,
        }
        where = "/admin/v2/namespaces/public/default/autoTopicCreation"
        await visitor.ask("POST", where, creation, headers=ROOT)
        await visitor.ask("PUT", f"{here}/t", headers=ROOT)
        lines.clear()
        for _ in range(2):
            asked = f"{here}/p/partitions?checkAllowAutoCreation=true"
            answered = await visitor.ask("GET", asked, headers=ROOT)
            assert answered.json()["partitions"] == 2
            body = {"subscription": "r", "positions": {"t": [0, 0]}}
            moved = await visitor.ask("POST", "/admin/v2/reading/cursors", body, headers=ROOT)
            assert moved.json() == {"missing": []}
    found = [json.loads(line) for line in lines]
    assert [(one["operation"], one["resources"], one["outcome"]) for one in found] == [
        (f"GET {here}/p/partitions", ["topic persistent://public/default/p"], "done"),
        (
            "POST /admin/v2/reading/cursors",
            ["subscription r of persistent://public/default/t"],
            "done",
        ),
    ]
