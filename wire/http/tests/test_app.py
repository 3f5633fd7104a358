"""The door: light until somebody knocks, then a real web server on the sockets it was given."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.front import Door, TlsContext
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.wire.http.front import HttpFront
from magnetar.wire.http.metrics.exposition import gauge
from magnetar.wire.http.options import HttpOptions

HEAVY = ("starlette", "hypercorn", "h11", "prometheus_client", "magnetar.wire.http.server.stack")


def door() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock


def url(sock: socket.socket, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{sock.getsockname()[1]}"


@asynccontextmanager
async def serving(
    *doors: tuple[socket.socket, ssl.SSLContext | None], options: HttpOptions | None = None
) -> AsyncIterator[None]:
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    extra = [gauge("magnetar_extra", "Of another part", 7)]
    named = [Door("http", sock, TlsContext(tls) if tls else None) for sock, tls in doors]
    front = HttpFront(broker, options or HttpOptions(), lambda: extra, named)
    await front.open()
    assert not front.listeners, "it accepts by itself"
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        nursery.start_soon(front.run)
        yield
        nursery.cancel_scope.cancel()
    front.close()


def test_the_door_imports_nothing_heavy() -> None:
    """In a fresh interpreter, since this one has imported everything already."""
    program = (
        f"import sys, magnetar.wire.http.front; print([m for m in {HEAVY} if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


LAZY = """
import socket, sys, trio
from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.link.front import Door
from magnetar.wire.http.front import HttpFront
from magnetar.wire.http.options import HttpOptions

async def main():
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        nursery.start_soon(HttpFront(broker, HttpOptions(), doors=[Door("http", sock)]).run)
        await trio.testing.wait_all_tasks_blocked()
        print("hypercorn" in sys.modules)
        stream = await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1])
        await stream.send_all(b"GET /healthz HTTP/1.0\\r\\n\\r\\n")
        print((await stream.receive_some()).split(b"\\r\\n")[0].decode())
        print("hypercorn" in sys.modules)
        nursery.cancel_scope.cancel()

import trio.testing
trio.run(main)
"""


def test_the_web_server_is_loaded_by_the_first_connection() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LAZY], capture_output=True, text=True, check=True
    )
    before, status, after = answer.stdout.splitlines()
    assert (before, after) == ("False", "True")
    assert status.startswith("HTTP/1.1 200")


async def test_requests_are_answered_on_the_given_socket() -> None:
    sock = door()
    async with serving((sock, None)), httpx.AsyncClient(base_url=url(sock)) as client:
        assert (await client.get("/healthz")).text == "ok"
        page = await client.get("/metrics")
        assert "magnetar_extra 7" in page.text
        assert "server" not in page.headers
    assert sock.fileno() == -1


async def test_tls_beside_plain(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server_context, client_context = tls_contexts
    plain, secure = door(), door()
    async with (
        serving((plain, None), (secure, server_context)),
        httpx.AsyncClient(verify=client_context) as client,
    ):
        for base in (url(plain), url(secure, "https")):
            assert (await client.get(f"{base}/admin/v2/clusters")).json() == ["standalone"]


async def test_more_connections_than_allowed_are_refused() -> None:
    sock = door()
    options = HttpOptions(connections_max=2)
    port = sock.getsockname()[1]
    async with serving((sock, None), options=options):
        silent = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
        async with httpx.AsyncClient(base_url=url(sock), timeout=5) as client:
            answer = await client.get("/healthz")
            assert answer.status_code == 503
            assert "as many HTTP connections as it may" in answer.json()["reason"]
            for stream in silent:
                await stream.aclose()
            with trio.fail_after(10):  # until the server has noticed that both are gone
                while "magnetar_http_connections 1\n" not in answer.text:
                    answer = await client.get("/metrics")
            (refused,) = re.findall(r"magnetar_http_connections_refused_total (\d+)", answer.text)
            assert int(refused) >= 1


async def test_a_connection_too_many_over_tls_is_closed(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server_context, client_context = tls_contexts
    secure = door()
    options = HttpOptions(connections_max=1)
    async with serving((secure, server_context), options=options):
        stream = await trio.open_tcp_stream("127.0.0.1", secure.getsockname()[1])
        async with stream, httpx.AsyncClient(verify=client_context, timeout=5) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(url(secure, "https"))


@pytest.mark.parametrize(
    "sent",
    [b"\x00\x01\x02\x03" * 100, b"GET " + b"/" * 100_000, b"POST / HTTP/1.1\r\n", b"\r\n" * 1_000],
)
async def test_nonsense_costs_its_connection_only(sent: bytes) -> None:
    sock = door()
    async with serving((sock, None)):
        stream = await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1])
        async with stream:
            await stream.send_all(sent)
            await stream.send_eof()
            with trio.fail_after(5):
                while True:
                    try:
                        if not await stream.receive_some():
                            break
                    except trio.BrokenResourceError:
                        break
        async with httpx.AsyncClient(base_url=url(sock)) as client:
            assert (await client.get("/healthz")).text == "ok"


async def test_a_client_that_vanishes_in_its_body_disturbs_nobody() -> None:
    sock = door()
    async with serving((sock, None)):
        stream = await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1])
        head = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{"
        await stream.send_all(head)
        await stream.aclose()
        async with httpx.AsyncClient(base_url=url(sock)) as client:
            assert (await client.get("/admin/v2/tenants")).json() == ["public", "pulsar"]


async def test_our_own_mistake_costs_one_request(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str | None:
        raise RuntimeError("a mistake of ours")

    sock = door()
    options = HttpOptions(readiness=broken)
    async with (
        serving((sock, None), options=options),
        httpx.AsyncClient(base_url=url(sock)) as client,
    ):
        answer = await client.get("/readyz")
        assert answer.status_code == 500
        assert answer.json() == {"reason": "this server failed; its log says why"}
        assert (await client.get("/healthz")).text == "ok"
    assert "a mistake of ours" in caplog.text
