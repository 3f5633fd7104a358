"""A page logs in, asks, and logs out; other pages get nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.login_sessions import COOKIE
from magnetar.wire.http.tests.visitor import Visitor, visiting

SESSION = "/admin/v2/session"
TENANTS = "/admin/v2/tenants"


def by(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


@pytest.fixture
async def secured() -> AsyncIterator[Visitor]:
    async with visiting(access=guarded(superusers=["root"])) as visitor:
        yield visitor


async def test_a_page_logs_in_and_out(secured: Visitor) -> None:
    assert (await secured.ask("POST", SESSION)).status_code == 401
    response = await secured.ask("POST", SESSION, headers=by("root"))
    assert response.json() == {"name": "root", "roles": ["root"], "superuser": True}
    cookie = response.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
        assert flag in cookie
    assert "Secure" not in cookie, "this is http"
    # the client keeps cookies as a browser does
    assert (await secured.get(SESSION))["name"] == "root"
    assert (await secured.ask("GET", TENANTS)).status_code == 200
    other = await secured.ask("GET", TENANTS, headers=by("eve"))
    assert other.status_code == 403, "a header decides over the cookie"
    again = await secured.ask("POST", SESSION)
    assert again.status_code == 403, "it would last for ever"
    value = secured.client.cookies[COOKIE]
    assert (await secured.ask("DELETE", SESSION)).status_code == 204
    assert COOKIE not in secured.client.cookies
    again = await secured.ask("GET", TENANTS, headers={"cookie": f"{COOKIE}={value}"})
    assert again.status_code == 401
    assert again.json() == {"reason": "the session is over: log in again"}


async def test_the_judge_is_the_same(secured: Visitor) -> None:
    eve = await secured.ask("POST", SESSION, headers=by("eve"))
    assert eve.json() == {"name": "eve", "roles": ["eve"], "superuser": False}
    assert (await secured.ask("GET", TENANTS)).status_code == 403
    for where in ("/admin/v2/tenants/eve", SESSION + "/x"):
        assert (await secured.ask("GET", where)).status_code in (403, 404)


async def test_other_pages_get_nothing(secured: Visitor) -> None:
    await secured.ask("POST", SESSION, headers=by("root"))
    for headers in (
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"content-type": "text/plain"},
    ):
        response = await secured.ask("POST", SESSION, headers=headers)
        assert response.status_code in (403, 415), headers


async def test_a_server_that_asks_nobody(visitor: Visitor) -> None:
    found = await visitor.get(SESSION)
    assert found == {"name": "", "roles": [""], "superuser": True}
