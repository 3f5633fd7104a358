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
