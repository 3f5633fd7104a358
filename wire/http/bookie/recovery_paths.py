"""The paths of an AutoRecovery that runs alone: whether it lives, and figures. Heavy: imported with
the first connection.
"""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp

from magnetar.wire.http.bookie.local import heartbeat, metrics
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, routes
from magnetar.wire.http.server import stack
from magnetar.wire.http.services import HttpServices

ROUTES: Final[Table] = (
    ("GET", "/heartbeat", heartbeat, Needs.OPEN),
    ("GET", "/healthz", heartbeat, Needs.OPEN),
    ("GET", "/metrics", metrics, Needs.METRICS),
)


def application(services: HttpServices) -> ASGIApp:
    """Everything that it serves over HTTP."""
    return stack.application(services, list(routes(services, ROUTES)))
