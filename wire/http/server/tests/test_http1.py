"""HTTP/1.1 as a peer hears it, below the application."""

from __future__ import annotations

import errno
import json
import socket
from contextlib import suppress

import pytest
import trio
from msgspec.structs import replace

from magnetar.wire.http.server.tests.test_stack import said, served
from magnetar.wire.http.tests.visitor import OPTIONS

HEAD = b"GET /healthz HTTP/1.1\r\nhost: a\r\n"
PUT = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nhost: a\r\n"
CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"


async def exchange(sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what is answered to it, until the server closes."""
    async with served() as dial, await dial() as stream:
        await stream.send_all(sent)
        received, _ = await said(stream)
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        (400, b"hello\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n" * 8),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"),
        (400, HEAD + b"bad header\r\n\r\n"),
        (400, PUT + b"content-length: x\r\n\r\n"),
        (400, PUT + b"content-length: 1\r\ncontent-length: 2\r\n\r\n"),
        (400, PUT + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n" + CHUNKS),
        (400, PUT + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS),
        (501, PUT + b"transfer-encoding: gzip\r\n\r\n"),
        (431, HEAD + b"x: " + b"y" * 20_000),
        (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (505, b"GET / HTTP/3.0\r\nhost: a\r\n\r\n"),
    ],
)
async def test_what_is_not_understood_hears_why(status: int, sent: bytes) -> None:
    answered, headers, body = await exchange(sent)
    assert answered == status
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert set(json.loads(body)) == {"reason"}


async def test_nothing_is_smuggled_behind_an_ambiguous_length() -> None:
    """Who counts by Content-Length sees one request, who counts by chunks two."""
    inner = b"0\r\n\r\n" + HEAD + b"\r\n"
    head = b"transfer-encoding: chunked\r\ncontent-length: %d\r\n\r\n" % len(inner)
    status, _, body = await exchange(PUT + head + inner)
    assert status == 400
    assert body.count(b"HTTP/1.1 ") == 0


@pytest.mark.parametrize(
    "upgrade",
    [
        b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n",
        b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ],
)
async def test_other_protocols_are_not_gone_over_to(upgrade: bytes) -> None:
    close = b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    status, _, body = await exchange(HEAD + upgrade + b"\r\n" + close)
    assert status == 200
    assert body.startswith(b"okHTTP/1.1 200")


@pytest.mark.parametrize(
    ("status", "target", "host"),
    [
        (200, b"http://127.0.0.1:8080/metrics?x=1", b"evil.example"),
        (200, b"HTTPS://localhost/metrics", b"a"),
        (200, b"http://localhost", b"a"),
        (403, b"http://evil.example/metrics", b"localhost"),
        (403, b"http://localhost@evil.example/metrics", b"localhost"),
    ],
)
async def test_a_target_in_absolute_form_says_whom_it_asks(
    status: int, target: bytes, host: bytes
) -> None:
    request = b"GET %b HTTP/1.1\r\nhost: %b\r\nconnection: close\r\n\r\n" % (target, host)
    answered, _, _ = await exchange(request)
    assert answered == status


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_connection_is_closed_behind_an_answer_in_pieces(version: bytes) -> None:
    request = b"GET /metrics HTTP/%b\r\nhost: localhost\r\nconnection: close\r\n\r\n" % version
    with trio.fail_after(10):
        answered, _, body = await exchange(request)
    assert answered == 200
    assert b"magnetar_ready" in body


async def test_who_leaves_while_it_is_passed_on_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def pass_on(sock: socket.socket, tls: object, begin: bytes) -> None:
        raise OSError(errno.ENOTCONN, "what getpeername says then")

    async with served(replace(OPTIONS, pass_on=pass_on)) as dial:
        async with await dial() as stream:
            await stream.send_all(b"GET /ws/v2/producer/persistent/a/b/c HTTP/1.1\r\n")
            assert (await said(stream))[0] == b""
        async with await dial() as stream:
            await stream.send_all(HEAD + b"connection: close\r\n\r\n")
            received, _ = await said(stream)
            assert received.endswith(b"ok")
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.parametrize("half", [b"", b"2\r\n{"])
async def test_who_leaves_in_the_middle_of_a_body_is_no_failure(
    half: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer, which did not wait for the body, met the end of the connection: 2.5 KB of
    traceback in the log for each.
    """
    head = b"POST /admin/v2/resourcegroups/x HTTP/1.1\r\nhost: localhost\r\n"
    head += b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    async with served() as dial:
        for _ in range(20):
            async with await dial() as stream:
                await stream.send_all(head + half)
                await stream.send_eof()
                with suppress(trio.BrokenResourceError):
                    await stream.receive_some()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_an_answer_that_needs_no_body_leaves_the_connection_usable() -> None:
    """The server closed it, or stopped reading it for 20 s, and the next request was lost."""
    head = b"POST /admin/v2/resourcegroups/x HTTP/1.1\r\nhost: localhost\r\n"
    head += b"content-length: 300000\r\n\r\n"
    async with served() as dial:
        for _ in range(20):
            async with await dial() as stream:
                await stream.send_all(head)
                await stream.send_all(bytes(300_000))
                await stream.send_all(HEAD + b"connection: close\r\n\r\n")
                received, _ = await said(stream)
                assert received.count(b"HTTP/1.1 ") == 2
                assert received.endswith(b"ok")
