"""All paths of a broker. Heavy: imported with the first connection."""

from __future__ import annotations

from starlette.types import ASGIApp

from magnetar.wire.http.admin import tables
from magnetar.wire.http.endpoints import (
    health,
    landing_page,
    lookup,
    metrics_page,
    scram_users,
    sessions,
)
from magnetar.wire.http.routes import mounted, routes
from magnetar.wire.http.server import stack
from magnetar.wire.http.services import HttpServices


def application(services: HttpServices) -> ASGIApp:
    """Everything that a broker serves over HTTP."""
    return stack.application(
        services,
        [
            *routes(services, landing_page.ROUTES),
            *routes(services, metrics_page.ROUTES),
            *routes(services, health.ROUTES),
            *mounted(services, lookup.TABLES),
            *mounted(services, {**sessions.TABLES, **scram_users.TABLES}),
            *mounted(services, tables.tables(services.broker.catalog.levels)),
        ],
    )
