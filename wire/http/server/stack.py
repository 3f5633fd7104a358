"""A web application, and its server. Heavy: imported with the first connection.

Hypercorn's own `serve` makes its own sockets, has no limit of connections and takes TLS as file
names. So this module runs its connection handler (`server/http1.py`) under trio's
`serve_listeners`, with the sockets and contexts that it is given. Each connection costs one task;
beyond `connections_max` connections are refused (`connection_limit.py`). Idle ones are closed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.core.kernel.errors import BrokerError, NotOwned
from magnetar.core.kernel.spare_files import EXHAUSTED
from magnetar.core.link.front import Door, TlsContext
from magnetar.wire.http.errors import status_of
from magnetar.wire.http.guard import foreign, headers_of
from magnetar.wire.http.redirect import location
from magnetar.wire.http.rights import CHALLENGE
from magnetar.wire.http.routes import refusal
from magnetar.wire.http.server.answers import Bounded
from magnetar.wire.http.server.http1 import Http1Connection
from magnetar.wire.http.server.unread_body import UnreadBody
from magnetar.wire.http.services import HttpServices

log = logging.getLogger(__name__)

READ_SECONDS_MAX: Final = 120.0
"""A connection is closed if its client sends no byte for this long."""
HEADER_BYTES_MAX: Final = 16 * 1024
QUEUE_MAX: Final = 4
"""Received pieces of a body, up to 64 KiB each, that the application has not read yet. The end of
the request and the disconnect of the client take a place each: with fewer places there could be a
deadlock.
"""
HANDSHAKE_SECONDS_MAX: Final = 10.0
ACCEPT_SECONDS: Final = 1.0


def application(services: HttpServices, paths: Sequence[BaseRoute]) -> ASGIApp:
    """The application that serves these paths, guarded and bounded."""
    app = Starlette(
        routes=paths,
        exception_handlers={
            BrokerError: _error_response,
            HTTPException: _refused,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False
    return UnreadBody(Guarded(Bounded(EncodedPaths(app), services.memory), services))


class EncodedPaths:
    """Passes on paths still URL-encoded (see `request.py`), with a slash at their end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path") or quote(scope["path"]).encode()
            path = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": path.rstrip("/") + "/"}
        await self._app(scope, receive, send)


class Guarded:
    """Refuses requests that a foreign web page makes a browser send (`guard.py`)."""

    def __init__(self, app: ASGIApp, services: HttpServices) -> None:
        self._app = app
        self._hosts = services.options.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = headers_of(scope["headers"])
            reason = foreign(self._hosts, scope["method"], scope["path"], headers)
            if reason is not None:
                log.debug("%s %s refused: %s", scope["method"], scope["path"][:200], reason)
                await refusal(403, reason)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, BrokerError)
    if isinstance(error, NotOwned) and (target := location(error, request)) is not None:
        response = refusal(307, str(error))
        response.headers["Location"] = target
        return response
    status = status_of(error)
    if status >= 500:
        log.warning("%s %s: %s", request.method, request.url.path, error)
    response = refusal(status, str(error))
    if status == 401:
        response.headers["WWW-Authenticate"] = CHALLENGE
    return response


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reason = error.detail
    if error.status_code == 404 and reason == "Not Found":
        reason = f"there is no {path_of(request)} here"
    elif error.status_code == 405 and reason == "Method Not Allowed":
        reason = f"{request.method} is not allowed on {path_of(request)}"
    response = refusal(error.status_code, reason)
    response.headers.update(error.headers or {})
    return response


def path_of(request: Request) -> str:
    return str(request.url.path[:200].rstrip("/")) or "/"


async def _failed(_request: Request, _error: Exception) -> Response:
    """The answer to a bug: Starlette raises the error again, and the server logs it."""
    return refusal(500, "this server failed; its log says why")


# -- serving -----------------------------------------------------------------------------------


async def serve(services: HttpServices, application: ASGIApp, doors: Sequence[Door]) -> None:
    """Accept and answer until cancelled. This function takes over the sockets."""
    options, room = services.options, services.room
    config = _config(options.idle_seconds)
    app: Any = application  # the two libraries spell the types of ASGI differently
    wrapped = wrap_app(app, options.body_bytes_max, "asgi")
    context = WorkerContext(None)

    async def handle(stream: Any) -> None:
        connection = Http1Connection(wrapped, config, context, ConnectionState({}), stream)
        connection.pass_on = options.pass_on
        try:
            await connection.run()
        except Exception:
            log.exception("an HTTP connection failed")
        finally:
            vars(connection).clear()  # its parts refer to it: else only the collector frees them

    async def admit(stream: Any) -> None:
        await room.admit(stream, handle)

    await trio.serve_listeners(admit, [_listener(door) for door in doors])


def _config(idle_seconds: float) -> Config:
    config = Config()
    config.keep_alive_timeout = idle_seconds
    config.read_timeout = READ_SECONDS_MAX  # type: ignore[assignment]  # any number of seconds
    config.ssl_handshake_timeout = HANDSHAKE_SECONDS_MAX
    config.h11_max_incomplete_size = HEADER_BYTES_MAX
    config.max_app_queue_size = QUEUE_MAX
    config.include_server_header = False
    config.accesslog = None
    errors = logging.getLogger(f"{__name__}.hypercorn")
    errors.setLevel(logging.WARNING)
    config.errorlog = errors
    return config


class Patient(trio.abc.Listener[trio.SocketStream]):
    """Retries when there is no file descriptor for another connection, and logs that once. Trio's
    own server would retry ten times a second, with a traceback in the log each time.
    """

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener
        self._troubled = False

    async def accept(self) -> trio.SocketStream:
        while True:
            try:
                stream = await self._listener.accept()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                if not self._troubled:
                    text = "http: cannot accept connections, trying again every second: %s"
                    log.warning(text, error)
                self._troubled = True
                await trio.sleep(ACCEPT_SECONDS)
            else:
                self._troubled = False
                return stream

    async def aclose(self) -> None:
        await self._listener.aclose()


def _listener(door: Door) -> trio.abc.Listener[Any]:
    listener = Patient(trio.SocketListener(trio.socket.from_stdlib_socket(door.socket)))
    return listener if door.tls is None else SecureListener(listener, door.tls)


class SecureListener(trio.abc.Listener[Any]):
    """Accepts with the TLS context of the moment, where `trio.SSLListener` would keep its first."""

    def __init__(self, listener: Patient, tls: TlsContext) -> None:
        self._listener = listener
        self._tls = tls

    async def accept(self) -> trio.SSLStream[trio.SocketStream]:
        stream, context = await self._listener.accept(), self._tls.current
        return trio.SSLStream(stream, context, server_side=True, https_compatible=True)

    async def aclose(self) -> None:
        await self._listener.aclose()
