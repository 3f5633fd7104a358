"""Starlette's routes from tables of (method, path, handler, right), and answers from results.

A handler is `async def name(request: AdminRequest) -> object`. None becomes 204 without a
body, a `Response` is sent as it is, anything else is sent as JSON. An error that it raises becomes
an answer with `{"reason": ...}`.

Internally all routes end with a slash, and `stack.py` adds one to requests without it: so mounts
and the paths below them always fit together, and clients may send either.

Invariants: the right of a row (`rights.py`) is asked for before its handler is called, and before
the body is read. One path is one route, whatever its methods, so that an unsupported method gets
405 and not 404.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from magnetar.wire.http.audited import READING, UNAUDITED, audited
from magnetar.wire.http.guard import form, headers_of
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs, authorize
from magnetar.wire.http.services import HttpServices

AdminHandler = Callable[[AdminRequest], Coroutine[Any, Any, object]]
Row = tuple[str, str, AdminHandler, Needs]
"""Methods (several with a space between), path below the mount, handler, right."""
Table = Sequence[Row]

JSON: Final = "application/json"


def exclusive(handler: AdminHandler) -> AdminHandler:
    """A handler with exclusive access to its namespace's policies, after it has read its body."""

    async def answer(request: AdminRequest) -> object:
        await request.body()  # before the lock: a slow sender must not delay others
        async with request.broker.catalog.changing(request.namespace):
            return await handler(request)

    return answer


def changing(table: Table) -> Table:
    """The table with exclusive access for every method but GET."""
    return [
        (methods, path, handler if methods == "GET" else exclusive(handler), right)
        for methods, path, handler, right in table
    ]


def routes(services: HttpServices, table: Table) -> list[BaseRoute]:
    """The routes of one table, in its order."""
    by_path: dict[str, dict[str, tuple[AdminHandler, Needs]]] = {}
    for methods, path, handler, right in table:
        for method in methods.split():
            known = by_path.setdefault(path + "/", {})
            assert method not in known, f"{method} {path} is there twice"
            known[method] = (handler, right)
    return [
        Route(path, endpoint(services, handlers), methods=list(handlers))
        for path, handlers in by_path.items()
    ]


def mounted(services: HttpServices, tables: Mapping[str, Table]) -> list[BaseRoute]:
    """Each table mounted at its own path, longest first."""
    return [
        Mount(path, routes=routes(services, tables[path])) for path in sorted(tables, key=_last)
    ]


def _last(path: str) -> tuple[int, str]:
    return (-len(path), path)


def endpoint(
    services: HttpServices, handlers: Mapping[str, tuple[AdminHandler, Needs]]
) -> Callable[[Request], Awaitable[Response]]:
    """The function that Starlette calls for one path."""

    async def respond(request: Request) -> Response:
        found = handlers.get(request.method)
        handler, right = found or handlers["GET"]  # HEAD is a GET without a body
        reason = form(request.method, headers_of(request.headers.raw))
        if reason is not None and not isinstance(handler, NotHere):
            raise HTTPException(415, reason)
        admin_request = AdminRequest(services, request)
        admin_request.check_query()  # now, since some handlers read it after the answer has begun
        try:
            await authorize(admin_request, right)
            if request.method in READING or right in UNAUDITED or isinstance(handler, ReadsOnly):
                return answer(await services.pauses.of(handler(admin_request)))
            with audited(admin_request) as outcome:
                answered = answer(await services.pauses.of(handler(admin_request)))
                outcome.status = answered.status_code
                return answered
        finally:
            admin_request.over()

    return respond


def answer(value: object) -> Response:
    """A handler's result as an HTTP response."""
    if value is None:
        return Response(status_code=204)
    if isinstance(value, Response):
        return value
    return Response(msgspec.json.encode(value), media_type=JSON)


def plain_text(text: str) -> Response:
    return Response(text, media_type="text/plain")


def refusal(status: int, reason: str) -> Response:
    """An error in the form that all clients read."""
    return Response(msgspec.json.encode({"reason": reason}), status, media_type=JSON)


class ReadsOnly:
    """A handler that changes nothing, whatever its method: there is no line in the audit trail."""

    def __init__(self, handler: AdminHandler) -> None:
        self._handler = handler

    async def __call__(self, request: AdminRequest) -> object:
        return await self._handler(request)


class NotHere:
    """A handler for an unsupported path: it answers 405 for every request."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def __call__(self, _ask: AdminRequest) -> object:
        raise not_here(self._reason)


def not_here(what: str) -> HTTPException:
    """405 for what other brokers support and this server does not."""
    return HTTPException(405, what)
