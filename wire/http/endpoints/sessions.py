"""`/admin/v2/session`: a page logs in, asks who it is, and logs out (`login_sessions.py`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from magnetar.core.kernel.errors import Unauthorized
from magnetar.wire.http.login_sessions import COOKIE, LIFE_SECONDS
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, Table


async def begin(request: AdminRequest) -> Response:
    """Begin a session for whoever asks, by a proof: a session that began others would never end."""
    if request.by_session:
        raise Unauthorized("a session begins no other: prove who you are")
    response = Response(msgspec.json.encode(_described(request)), media_type=JSON)
    cookie = request.services.sessions.begin(request.identity)
    _set(request, response, cookie, LIFE_SECONDS)
    return response


async def who(request: AdminRequest) -> dict[str, Any]:
    return _described(request)


async def end(request: AdminRequest) -> Response:
    """End the session of the cookie; an identity proved otherwise has none."""
    request.services.sessions.end_of(request.request.cookies.get(COOKIE, ""))
    response = Response(status_code=204)
    _set(request, response, "", 0)
    return response


def _described(request: AdminRequest) -> dict[str, Any]:
    identity, judge = request.identity, request.services.access.judge
    return {
        "name": identity.name,
        "roles": list(identity.roles),
        "superuser": judge is None or judge.is_superuser(identity),
    }


def _set(request: AdminRequest, response: Response, value: str, seconds: int) -> None:
    response.set_cookie(
        COOKIE,
        value,
        max_age=seconds,
        path="/",
        secure=request.request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    response.headers["Cache-Control"] = "no-store"


TABLES: Final[dict[str, Table]] = {
    "/admin/v2/session": (
        ("POST", "", begin, Needs.IDENTITY),
        ("GET", "", who, Needs.IDENTITY),
        ("DELETE", "", end, Needs.IDENTITY),
    )
}
