"""Tables become routes, results become answers."""

import pytest
from starlette.responses import Response

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import answer, mounted, not_here, refusal, routes
from magnetar.wire.http.services import HttpServices
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor


async def nothing(_ask: AdminRequest) -> None:
    pass


async def test_one_path_is_one_route(visitor: Visitor) -> None:
    services = HttpServices(visitor.broker, OPTIONS, tuple)
    table = (
        ("GET", "/a", nothing, Needs.OPEN),
        ("POST PUT", "/a", nothing, Needs.OPEN),
        ("GET", "/b", nothing, Needs.OPEN),
    )
    first, second = routes(services, table)
    assert first.methods == {"GET", "HEAD", "POST", "PUT"}  # type: ignore[attr-defined]  # a Route
    assert second.path == "/b/"  # type: ignore[attr-defined]  # likewise
    with pytest.raises(AssertionError, match="twice"):
        routes(services, [("GET", "/a", nothing, Needs.OPEN)] * 2)


async def test_longer_mounts_are_asked_first(visitor: Visitor) -> None:
    services = HttpServices(visitor.broker, OPTIONS, tuple)
    table = (("GET", "", nothing, Needs.OPEN),)
    found = mounted(services, {"/admin/a": table, "/admin/a/longer": table})
    assert [mount.path for mount in found] == [  # type: ignore[attr-defined]  # all are mounts
        "/admin/a/longer",
        "/admin/a",
    ]


def test_results_become_answers() -> None:
    assert answer(None).status_code == 204
    assert answer({"a": 1}).body == b'{"a":1}'
    assert answer([]).media_type == "application/json"
    ready = Response("x")
    assert answer(ready) is ready
    assert refusal(404, "no").body == b'{"reason":"no"}'
    assert not_here("not that").status_code == 405
