"""All paths of a bookie: those of Apache BookKeeper's (`HttpRouter.java` of 4.18), and a page for
people. Heavy: imported with the first connection.

Forms of answers are Apache's; refusals are `{"reason": ...}`, as everywhere here.
"""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp

from magnetar.wire.http.bookie import auto_recovery, cluster, local, page
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import NotHere, Table, routes
from magnetar.wire.http.server import stack
from magnetar.wire.http.services import HttpServices

EXPANSION: Final = NotHere(
    "directories are added at a start: --ledger-dirs with --allow-storage-expansion"
)
RECOVERY: Final = NotHere(
    "what may take hours is a command, which says how far it is: `magnetar bookie decommission`, "
    "`magnetar bookie recover`"
)
NOT_HERE: Final[Table] = (
    ("PUT", "/api/v1/bookie/expand_storage", EXPANSION, Needs.OF_BOOKIE),
    ("PUT", "/api/v1/autorecovery/bookie", RECOVERY, Needs.OF_BOOKIE),
    ("PUT", "/api/v1/autorecovery/decommission", RECOVERY, Needs.OF_BOOKIE),
)


def application(services: HttpServices) -> ASGIApp:
    """Everything that a bookie serves over HTTP."""
    tables = (page.ROUTES, local.ROUTES, cluster.ROUTES, auto_recovery.ROUTES, NOT_HERE)
    found = [route for table in tables for route in routes(services, table)]
    return stack.application(services, found)
