"""The entry point of HTTP: waits for the first connection, then loads the web stack.

The web stack (Starlette, Hypercorn, h11, h2) costs 0.12 to 0.18 s and 7 MB to import, which is
half of the server's budget for its start and much of its idle memory; and many
servers never get an HTTP request. So the sockets listen from the start, but this module
imports none of the stack: it waits until a connection is in the kernel's queue of one of them,
then imports the stack in a thread and serves.

Why in a thread: importing, and compiling some hundred routes, is one long computation. On the loop
it blocks everything for 120 ms; in a thread it yields to the loop every switch interval (0.5 ms
in the server). The longest pause measured was 4 ms, and the first answer takes 0.08 s longer.

Invariant: nothing imported here imports Starlette or Hypercorn (a test checks a fresh interpreter).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.spare_files import EXHAUSTED, Lend
from magnetar.core.link.front import Door

if TYPE_CHECKING:
    from magnetar.wire.http.services import HttpServices

log = logging.getLogger(__name__)

Server = Callable[[Sequence[Door]], Awaitable[None]]

BROKER: Final = "magnetar.wire.http.broker_paths"
BOOKIE: Final = "magnetar.wire.http.bookie.paths"
RECOVERY: Final = "magnetar.wire.http.bookie.recovery_paths"
"""Modules with applications, which are imported with the first connection."""
RETRY_SECONDS: Final = 1.0
LATE: Final = (
    *("anyio.lowlevel", "anyio._core._testing", "anyio._core._sockets", "anyio._core._streams"),
    *("anyio.abc", "anyio.streams.stapled", "anyio.streams.tls", "anyio.streams.memory"),
)


async def serve_http(
    services: HttpServices, doors: Sequence[Door], lend: Lend, paths: str = BROKER
) -> None:
    """Serve on bound, listening sockets until cancelled. Clients that connect before this runs
    wait. `paths` is the module with the application.
    """
    await _first_connection([door.socket for door in doors])
    log.info("the first HTTP connection: loading the web server")
    server = await _loaded(services, lend, paths)
    await server(doors)


async def _loaded(services: HttpServices, lend: Lend, paths: str) -> Server:
    """The web server. While its files cannot be opened, not even with the descriptors held in
    reserve, new connections wait in the kernel's queue.
    """
    response = False
    while True:
        try:
            with lend():
                return await trio.to_thread.run_sync(_load, services, paths)
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            if not response:
                log.warning("cannot load the web server, trying again every second: %s", error)
            response = True
            await trio.sleep(RETRY_SECONDS)


def _load(services: HttpServices, paths: str) -> Server:
    """In a thread: import the stack and build the application, compiling some hundred routes."""
    from magnetar.wire.http.server import stack

    # modules that the stack would import only with the first request that needs them
    for name in (*LATE, *services.options.late_modules):
        import_module(name)

    return partial(stack.serve, services, import_module(paths).application(services))


async def _first_connection(sockets: Sequence[socket.socket]) -> None:
    """Return when one of the sockets has a connection to accept."""
    async with trio.open_nursery() as nursery:

        async def wait(sock: socket.socket) -> None:
            await trio.lowlevel.wait_readable(sock)
            nursery.cancel_scope.cancel()

        for sock in sockets:
            nursery.start_soon(wait, sock)
