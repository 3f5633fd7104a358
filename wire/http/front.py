"""The HTTP front: it accepts its own connections. Light: it is imported at start-up, and the web
stack with the first connection (`app.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.spare_files import Lend
from magnetar.core.link.front import Door, Listener
from magnetar.wire.http.app import serve_http
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.round_trip import HealthCheck
from magnetar.wire.http.services import HttpServices


class HttpFront:
    """See the module's docstring."""

    listeners: Sequence[Listener] = ()

    def __init__(
        self,
        broker: Broker,
        options: HttpOptions,
        extra_metrics: Callable[[], Iterable[Family]] = tuple,
        doors: Sequence[Door] = (),
        lend: Lend = nullcontext,
        health: HealthCheck | None = None,
    ) -> None:
        self.services = HttpServices(broker, options, extra_metrics, health)
        self._doors = doors
        self._lend = lend
        """Spare file descriptors for late imports."""

    async def open(self) -> None:
        """Do nothing: the stack is loaded with the first connection."""

    async def run(self) -> None:
        await serve_http(self.services, self._doors, self._lend)

    async def stop(self) -> None:
        """Connections have nothing that is not stored."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
