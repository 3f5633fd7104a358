"""The paths that are about the bookie's cluster, answered from the cluster's metadata."""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.errors import Invalid
from magnetar.core.ports.bookie_administration import ClusterAdministration
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import Table, not_here

PAGE_LEDGERS: Final = 100
"""Ledgers on a page of a list, as Apache has it."""


def _cluster(request: AdminRequest) -> ClusterAdministration:
    found = request.services.bookie.cluster
    if found is None:
        raise not_here("this bookie is in no cluster: it runs without --metadata-uri")
    return found


async def list_bookies(request: AdminRequest) -> object:
    """`type` is rw or ro; hosts are told with `print_hostnames`, otherwise they are null."""
    cluster, kind = _cluster(request), request.text("type", "rw")
    if kind not in ("rw", "ro"):
        raise Invalid(f"type is rw or ro, not {kind[:40]!r}")
    found = await (cluster.read_only_bookies() if kind == "ro" else cluster.bookies())
    named = request.flag("print_hostnames")
    return {bookie: _host(address) if named else None for bookie, address in found.items()}


def _host(address: str) -> str:
    """The host of an address, as Apache's bookie names it; what is no address as it is."""
    host, colon, _ = address.rpartition(":")
    return host if colon else address


async def cluster_info(request: AdminRequest) -> object:
    cluster = _cluster(request)
    writable, read_only = await cluster.bookies(), await cluster.read_only_bookies()
    known = await cluster.known_bookies()
    found = await cluster.replication()
    return {
        "auditorElected": found.auditor is not None,
        "auditorId": found.auditor or "",
        "clusterUnderReplicated": found.under_replicated,
        "ledgerReplicationEnabled": found.enabled,
        "totalBookiesCount": len(known),
        "writableBookiesCount": len(writable),
        "readonlyBookiesCount": len(read_only),
        "unavailableBookiesCount": len(set(known).difference(writable, read_only)),
    }


async def list_ledgers(request: AdminRequest) -> object:
    """All ids, or a `page` of them from 1 on; with `print_metadata`, what each has."""
    cluster = _cluster(request)
    ids = await cluster.ledgers()
    page = request.number("page", 0)
    if page > 0 or request.flag("print_metadata"):
        first = max(page - 1, 0) * PAGE_LEDGERS
        ids = ids[first : first + PAGE_LEDGERS]
    if not request.flag("print_metadata"):
        return {str(ledger_id): None for ledger_id in ids}
    return {str(ledger_id): await cluster.ledger(ledger_id) for ledger_id in ids}


async def ledger_metadata(request: AdminRequest) -> object:
    ledger_id = _ledger_id(request)
    return {str(ledger_id): await _cluster(request).ledger(ledger_id)}


async def delete_ledger(request: AdminRequest) -> object:
    ledger_id = _ledger_id(request)
    await _cluster(request).ledger(ledger_id)  # `LedgerNotFound`, if there is none
    await _cluster(request).delete_ledger(ledger_id)
    return f"Deleted ledger: {ledger_id}"


def _ledger_id(request: AdminRequest) -> int:
    found = request.number("ledger_id", -1)
    if found < 0:
        raise Invalid("ledger_id is missing, or negative")
    return found


ROUTES: Final[Table] = (
    ("GET", "/api/v1/bookie/list_bookies", list_bookies),
    ("GET", "/api/v1/bookie/cluster_info", cluster_info),
    ("GET", "/api/v1/ledger/list", list_ledgers),
    ("GET", "/api/v1/ledger/metadata", ledger_metadata),
    ("DELETE", "/api/v1/ledger/delete", delete_ledger),
)
