"""All paths of a bookie: those of Apache BookKeeper's (`HttpRouter.java` of 4.18), and a page for
people. Heavy: imported with the first connection.

Forms of answers are Apache's; refusals are `{"reason": ...}`, as everywhere here. What needs a
client of other bookies is not here: the information of all bookies, and reading a ledger.
"""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp

from magnetar.wire.http.bookie import cluster, local, page
from magnetar.wire.http.routes import NotHere, Table, routes
from magnetar.wire.http.server import stack
from magnetar.wire.http.services import HttpServices

ELSEWHERE: Final = NotHere("this bookie does not ask others: `bookkeeper shell bookieinfo` does")
READING: Final = NotHere("entries are read by a client: `magnetar ledger read` is one")
EXPANSION: Final = NotHere(
    "directories are added at a start: --ledger-dirs with --allow-storage-expansion"
)
RECOVERY: Final = NotHere(
    "there are commands for that: `magnetar bookie autorecovery`, `decommission`"
)
NOT_HERE: Final[Table] = (
    ("GET", "/api/v1/bookie/list_bookie_info", ELSEWHERE),
    ("PUT", "/api/v1/bookie/expand_storage", EXPANSION),
    ("GET", "/api/v1/ledger/read", READING),
    ("GET PUT POST DELETE", "/api/v1/autorecovery/{rest:path}", RECOVERY),
)


def application(services: HttpServices) -> ASGIApp:
    """Everything that a bookie serves over HTTP."""
    tables = (page.ROUTES, local.ROUTES, cluster.ROUTES, NOT_HERE)
    found = [route for table in tables for route in routes(services, table)]
    return stack.application(services, found)
