"""What holds for every path: bodies, names, methods, refusals."""

import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from starlette.requests import Request
from trio.testing import MockClock

from magnetar.core.link.front import Door
from magnetar.wire.http.broker_paths import application
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.request import BODY_SECONDS_MAX
from magnetar.wire.http.server import stack
from magnetar.wire.http.server.http1 import REQUEST_SECONDS_MAX
from magnetar.wire.http.server.stack import serve
from magnetar.wire.http.services import HttpServices
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

NAMESPACE = "/admin/v2/namespaces/public/default"


async def test_unknown_paths_are_refused_in_json(visitor: Visitor) -> None:
    for path in ("/nothing", "/admin", "/admin/v2", "/admin/v2/no", "/admin/v2/brokers/a/b/c/d"):
        assert path.rstrip("/") in await visitor.fails(404, "GET", path)


def test_the_root_has_a_name() -> None:
    """Where there is no page: a recovery said that "there is no  here"."""
    for path, name in (("/", "/"), ("/a/", "/a")):
        scope = {"type": "http", "path": path, "headers": [], "query_string": b""}
        assert stack.path_of(Request({**scope, "server": ("h", 1), "scheme": "http"})) == name


async def test_unknown_methods_are_refused_in_json(visitor: Visitor) -> None:
    response = await visitor.ask("PATCH", "/admin/v2/clusters")
    assert response.status_code == 405
    assert response.json() == {"reason": "PATCH is not allowed on /admin/v2/clusters"}
    assert "GET" in response.headers["allow"]


async def test_paths_of_the_first_version_are_refused(visitor: Visitor) -> None:
    assert "first version" in await visitor.fails(405, "GET", "/admin/namespaces/p/c/n")
    await visitor.fails(404, "GET", "/admin/v2/persistent/p/c/n/t/nothing")


async def test_a_slash_at_the_end_changes_nothing(visitor: Visitor) -> None:
    assert await visitor.get("/admin/v2/clusters/") == ["standalone"]
    assert (await visitor.ask("GET", "/metrics/")).status_code == 200


async def test_bodies_have_a_limit(visitor: Visitor) -> None:
    parts = iter([b"x" * 6_000, b"x" * 6_000])
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": next(parts), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    services = HttpServices(visitor.broker, OPTIONS, tuple)
    path = "/admin/v2/tenants/t"
    scope = {"type": "http", "method": "PUT", "path": path, "query_string": b"", "headers": []}
    await application(services)(scope, receive, send)
    assert sent[0]["status"] == 413
    assert sent[1]["body"] == b'{"reason":"a body may have at most 10000 bytes"}'


async def test_bodies_may_be_absent_empty_or_null(visitor: Visitor) -> None:
    for number, body in enumerate((None, b"", b"null", b" null\n", b"{}")):
        await visitor.does("POST", "/admin/v2/namespaces/public/default/retention", body)
        await visitor.does("PUT", f"/admin/v2/namespaces/public/n{number}", body)


async def test_bodies_that_are_no_json_are_refused(visitor: Visitor) -> None:
    await visitor.fails(400, "PUT", "/admin/v2/tenants/t", b"{")
    await visitor.fails(400, "POST", f"{NAMESPACE}/retention", b"[1]")
    await visitor.fails(400, "POST", f"{NAMESPACE}/messageTTL", b'"soon"')


async def test_names_are_decoded_once(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/a%20%25b%C3%A9")
    listed = await visitor.get("/admin/v2/persistent/public/default")
    assert listed == ["persistent://public/default/a %bé"]
    subscription = "/admin/v2/persistent/public/default/a%20%25b%C3%A9/subscription/s%2Fone"
    await visitor.does("PUT", subscription)
    assert await visitor.get(
        "/admin/v2/persistent/public/default/a%20%25b%C3%A9/subscriptions"
    ) == ["s/one"]


async def test_names_that_may_not_be_are_412(visitor: Visitor) -> None:
    await visitor.fails(412, "PUT", "/admin/v2/tenants/a%20b")
    await visitor.fails(412, "PUT", "/admin/v2/persistent/public/default/%FF")
    await visitor.fails(412, "PUT", "/admin/v2/persistent/public/default/a%2Fb")


async def test_numbers_that_are_none_are_400(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/a")
    await visitor.fails(400, "GET", "/admin/v2/persistent/public/default/a/messageid/now")


async def test_many_ask_at_once(visitor: Visitor) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(50):
            path = f"/admin/v2/persistent/public/default/t{number}"
            nursery.start_soon(visitor.does, "PUT", path)
    assert len(await visitor.get("/admin/v2/persistent/public/default")) == 50


Dial = Callable[[], Coroutine[Any, Any, trio.SocketStream]]


@asynccontextmanager
async def served(options: HttpOptions = OPTIONS) -> AsyncIterator[Dial]:
    """The whole stack on a socket; how to connect to it."""
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    port = sock.getsockname()[1]

    async def dial() -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", port)

    async with visiting() as visitor, trio.open_nursery() as nursery:
        services = HttpServices(visitor.broker, options, tuple)
        nursery.start_soon(serve, services, application(services), [Door("http", sock)])
        yield dial
        nursery.cancel_scope.cancel()


async def said(stream: trio.SocketStream) -> tuple[bytes, float]:
    """All that comes until the server closes, and how long that takes."""
    begun, received = trio.current_time(), b""
    while piece := await stream.receive_some():
        received += piece
    return received, trio.current_time() - begun


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nhost: a\r\n"])
async def test_who_asks_for_nothing_has_little_time(autojump_clock: MockClock, sent: bytes) -> None:
    """A thousand of them kept everybody else out for more than a minute."""
    async with served() as dial, await dial() as stream:
        await stream.send_all(sent)
        received, seconds = await said(stream)
        assert received == b""
        assert seconds == pytest.approx(REQUEST_SECONDS_MAX, abs=1)


async def test_who_has_asked_may_stay_for_the_next_time(autojump_clock: MockClock) -> None:
    async with served() as dial, await dial() as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        received, seconds = await said(stream)
        assert received.endswith(b"\r\n\r\nok")
        assert seconds == pytest.approx(OPTIONS.idle_seconds, abs=1)


async def test_half_a_body_is_not_waited_for_long(autojump_clock: MockClock) -> None:
    async with served() as dial, await dial() as stream:
        head = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{"
        await stream.send_all(head)
        received, seconds = await said(stream)
        assert received.startswith(b"HTTP/1.1 408")
        assert received.endswith(b'{"reason":"the body must arrive within 20 seconds"}')
        assert seconds == pytest.approx(BODY_SECONDS_MAX, abs=1)
