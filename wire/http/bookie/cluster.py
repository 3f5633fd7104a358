"""The paths that are about the bookie's cluster, answered from its metadata and its bookies."""

from __future__ import annotations

import math
from typing import Final

from starlette.exceptions import HTTPException

from magnetar.core.kernel.errors import Corrupted, Invalid, Unsupported
from magnetar.core.ports.bookie_administration import ClusterAdministration, PeerAdministration
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, not_here

PAGE_LEDGERS: Final = 100
"""Ledgers on a page of a list, as Apache has it."""
PAGE_ENTRIES: Final = 1000
"""Entries on a page, likewise; Apache's bookie reads all that are asked for without one."""
UNITS: Final = ("", "KB", "MB", "GB", "TB")


def of_cluster(request: AdminRequest) -> ClusterAdministration:
    """The bookie's cluster, if it is in one."""
    found = request.services.bookie.cluster
    if found is None:
        raise not_here("this bookie is in no cluster: it runs without --metadata-uri")
    return found


async def list_bookies(request: AdminRequest) -> object:
    """`type` is rw or ro; hosts are told with `print_hostnames`, otherwise they are null."""
    cluster, kind = of_cluster(request), request.text("type", "rw")
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
    cluster = of_cluster(request)
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
    cluster = of_cluster(request)
    ids = await cluster.ledgers()
    page = request.number("page", 0)
    if page > 0 or request.flag("print_metadata"):
        first = max(page - 1, 0) * PAGE_LEDGERS
        ids = ids[first : first + PAGE_LEDGERS]
    if not request.flag("print_metadata"):
        return {str(ledger_id): None for ledger_id in ids}
    return {str(ledger_id): await _described(cluster, ledger_id) for ledger_id in ids}


async def _described(cluster: ClusterAdministration, ledger_id: int) -> object:
    """Its metadata, or what is wrong with them: the others are shown all the same."""
    try:
        return await cluster.ledger(ledger_id)
    except (Corrupted, Unsupported) as error:
        return {"ledgerId": ledger_id, "error": str(error)}


async def ledger_metadata(request: AdminRequest) -> object:
    ledger_id = _ledger_id(request)
    return {str(ledger_id): await of_cluster(request).ledger(ledger_id)}


async def delete_ledger(request: AdminRequest) -> object:
    ledger_id = _ledger_id(request)
    await of_cluster(request).ledger(ledger_id)  # `LedgerNotFound`, if there is none
    await of_cluster(request).delete_ledger(ledger_id)
    return f"Deleted ledger: {ledger_id}"


def _ledger_id(request: AdminRequest) -> int:
    found = request.number("ledger_id", -1)
    if found < 0:
        raise Invalid("ledger_id is missing, or negative")
    return found


async def list_bookie_info(request: AdminRequest) -> object:
    """Room on the disks of all bookies that answer: texts of Apache's, whatever JSON is for
    (`ListBookieInfoService.java` of 4.18).
    """
    found = await _peers(request).rooms()
    if not found:
        raise HTTPException(404, "Not found any Bookie info.")
    answer = {
        bookie: f": {{Free: {_readable(free)}, Total: {_readable(total)}}},"
        for bookie, (free, total) in found.items()
    }
    free, total = (sum(one[i] for one in found.values()) for i in (0, 1))
    answer["ClusterInfo: "] = f"{{Free: {_readable(free)}, Total: {_readable(total)}}}"
    return answer


def _readable(size: int) -> str:
    """A number, and the same in units of 1000."""
    rounded, unit = float(size), 0
    while rounded >= 1000 and unit < len(UNITS) - 1:
        rounded, unit = rounded / 1000, unit + 1
    if not unit:
        return str(size)
    digits = f"{math.floor(rounded * 1000) / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{size}({digits}{UNITS[unit]})"


async def read_entries(request: AdminRequest) -> object:
    """Entries of a ledger as text, 1,000 of them at most; `page` counts from 1. Nothing is fenced
    or recovered.
    """
    ledger_id, page = _ledger_id(request), request.number("page", 0)
    first, last = request.number("start_entry_id", 0), request.number("end_entry_id", -1)
    answer: dict[str, str] = {}
    if page > 0:
        begin = (page - 1) * PAGE_ENTRIES
        first, end = max(first, begin), begin + PAGE_ENTRIES - 1
        last = end if last < 0 else min(last, end)
        answer["Entries for page: "] = str(page)
    if first < 0 or (0 <= last < first):
        raise Invalid(f"there is no entry from {first} to {last}")
    if last < 0 or last - first >= PAGE_ENTRIES:
        last = first + PAGE_ENTRIES - 1
    for entry_id, payload in (await _peers(request).entries(ledger_id, first, last)).items():
        answer[str(entry_id)] = payload.decode("ascii", errors="replace")
    return answer


def _peers(request: AdminRequest) -> PeerAdministration:
    of_cluster(request)
    found = request.services.bookie.peers
    assert found is not None, "a bookie of a cluster knows others"
    return found


ROUTES: Final[Table] = (
    ("GET", "/api/v1/bookie/list_bookies", list_bookies, Needs.OF_BOOKIE),
    ("GET", "/api/v1/bookie/cluster_info", cluster_info, Needs.OF_BOOKIE),
    ("GET", "/api/v1/bookie/list_bookie_info", list_bookie_info, Needs.OF_BOOKIE),
    ("GET", "/api/v1/ledger/list", list_ledgers, Needs.OF_BOOKIE),
    ("GET", "/api/v1/ledger/read", read_entries, Needs.OF_BOOKIE),
    ("GET", "/api/v1/ledger/metadata", ledger_metadata, Needs.OF_BOOKIE),
    ("DELETE", "/api/v1/ledger/delete", delete_ledger, Needs.OF_BOOKIE),
)
