"""The paths that are about this bookie alone."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.ports.bookie_administration import CompactionDetails
from magnetar.wire.http.metrics.exposition import CONTENT_TYPE, counter, gauge, text
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, plain_text, refusal


class ReadOnlyBody(Struct, rename="camel"):
    read_only: bool = False


class ForceBody(Struct, rename="camel"):
    force_major: bool | None = None
    force_minor: bool | None = None


class SuspendBody(Struct, rename="camel"):
    suspend_major: bool = False
    suspend_minor: bool = False


class LocationsBody(Struct):
    compact: bool = field(default=False, name="entryLocationRocksDBCompact")
    paths: str = field(default="", name="entryLocations")


class ResumeBody(Struct, rename="camel"):
    resume_major: bool = False
    resume_minor: bool = False


async def heartbeat(_request: AdminRequest) -> Response:
    return plain_text("OK\n")


async def metrics(request: AdminRequest) -> Response:
    services = request.services
    families = [
        *services.extra_metrics(),
        gauge("magnetar_http_connections", "HTTP connections being served", services.room.served),
        counter(
            "magnetar_http_connections_refused_total",
            "HTTP connections over the limit",
            services.room.refused,
        ),
    ]
    return Response(text(families), media_type=CONTENT_TYPE)


async def configuration(request: AdminRequest) -> object:
    """The settings in force, by our names."""
    return request.options.configuration


# -- its state ---------------------------------------------------------------------------------


async def state(request: AdminRequest) -> object:
    found = request.services.bookie.state()
    return {
        "running": found.running,
        "readOnly": found.read_only,
        "shuttingDown": not found.running,
        "availableForHighPriorityWrites": found.urgent_writes,
    }


async def read_only(request: AdminRequest) -> object:
    return {"readOnly": request.services.bookie.state().read_only}


async def set_read_only(request: AdminRequest) -> object:
    body = await request.json(ReadOnlyBody)
    request.services.bookie.set_read_only(body.read_only)
    return await read_only(request)


async def is_ready(request: AdminRequest) -> Response:
    if not request.services.bookie.state().running:
        return refusal(503, "the bookie is stopping")
    return plain_text("OK\n")


async def sanity(request: AdminRequest) -> object:
    bookie = request.services.bookie
    only_reads = bookie.state().read_only
    return {"passed": only_reads or await bookie.is_sane(), "readOnly": only_reads}


async def info(request: AdminRequest) -> object:
    found = request.services.bookie.state()
    return {"freeSpace": found.free_bytes, "totalSpace": found.total_bytes}


# -- its files ---------------------------------------------------------------------------------


async def last_log_mark(request: AdminRequest) -> object:
    journal, offset = (await request.services.bookie.files()).mark
    return {f"LastLogMark: Journal Id - {journal}({journal:x}.txn)": f"Pos - {offset}"}


async def list_disk_file(request: AdminRequest) -> object:
    """`file_type` is journal, entrylog or index; all without it. Indexes are databases: no files
    of Apache's kind.
    """
    found = await request.services.bookie.files()
    files = {"journal": found.journals, "entrylog": found.entry_logs, "index": ()}
    asked = request.text("file_type")
    kinds = [asked] if asked in files else list(files)
    return {f"{kind} files": "".join(f"{name}\t" for name in files[kind]) for kind in kinds}


# -- garbage collection ------------------------------------------------------------------------


async def trigger_gc(request: AdminRequest) -> object:
    """Compactions that are not named run unless they are suspended (`TriggerGCService.java`)."""
    body, now = await request.json(ForceBody), request.services.bookie.garbage.details()
    request.services.bookie.garbage.collect(
        minor=_chosen(body.force_minor, now.minor), major=_chosen(body.force_major, now.major)
    )
    return f"Triggered GC on BookieServer: {request.services.bookie.state().bookie_id}"


def _chosen(named: bool | None, found: CompactionDetails) -> bool:
    return not found.suspended if named is None else named


async def gc(request: AdminRequest) -> object:
    return {"is_in_force_gc": _word(request.services.bookie.garbage.details().running)}


async def gc_details(request: AdminRequest) -> object:
    found = request.services.bookie.garbage.details()
    return [
        {
            "forceCompacting": found.running,
            **_compaction("Major", found.major),
            **_compaction("Minor", found.minor),
            "lastEntryLocationCompactionTime": found.locations.last_ms,
            "entryLocationCompactionCounter": found.locations.count,
        }
    ]


def _compaction(kind: str, found: CompactionDetails) -> dict[str, object]:
    return {
        f"{kind.lower()}Compacting": found.running,
        f"last{kind}CompactionTime": found.last_ms,
        f"{kind.lower()}CompactionCounter": found.count,
    }


async def suspend_compaction(request: AdminRequest) -> object:
    body = await request.json(SuspendBody)
    return _suspend(request, True, major=body.suspend_major, minor=body.suspend_minor)


async def resume_compaction(request: AdminRequest) -> object:
    body = await request.json(ResumeBody)
    return _suspend(request, False, major=body.resume_major, minor=body.resume_minor)


def _suspend(request: AdminRequest, suspended: bool, *, major: bool, minor: bool) -> object:
    verb = "suspend" if suspended else "resume"
    if not (major or minor):
        raise HTTPException(400, f"neither {verb}Major nor {verb}Minor is true")
    request.services.bookie.garbage.suspend(suspended, major=major, minor=minor)
    kinds = [name for name, chosen in (("majorGC", major), ("minorGC", minor)) if chosen]
    bookie_id = request.services.bookie.state().bookie_id
    return f"{verb.capitalize()} {', '.join(kinds)} on BookieServer: {bookie_id}"


async def suspended_compaction(request: AdminRequest) -> object:
    found = request.services.bookie.garbage.details()
    return {
        "isMajorGcSuspended": _word(found.major.suspended),
        "isMinorGcSuspended": _word(found.minor.suspended),
    }


async def compacts_locations(request: AdminRequest) -> object:
    found = request.services.bookie.garbage.details()
    return {found.locations_path: found.locations.running}


async def compact_locations(request: AdminRequest) -> object:
    """`entryLocations` may name paths, of which there is one here (`TriggerLocationCompactService`
    of 4.18).
    """
    body, garbage = await request.json(LocationsBody), request.services.bookie.garbage
    if not (await request.body()).strip():
        raise HTTPException(400, "the body is empty")
    if not body.compact:
        return "Not trigger Entry Location RocksDB compact."
    here = garbage.details().locations_path
    if set(filter(None, body.paths.strip().split(","))) - {here}:
        raise HTTPException(400, f"the index of locations is {here}, not {body.paths[:200]}")
    garbage.compact_locations()
    bookie_id = request.services.bookie.state().bookie_id
    return f"Triggered entry Location RocksDB compact on bookie:{bookie_id}"


def _word(value: bool) -> str:
    """Apache writes these as text."""
    return "true" if value else "false"


BOOKIE: Final = "/api/v1/bookie"
ROUTES: Final[Table] = (
    ("GET", "/heartbeat", heartbeat, Needs.OPEN),
    ("GET", "/healthz", heartbeat, Needs.OPEN),
    ("GET", "/readyz", is_ready, Needs.OPEN),
    ("GET", "/metrics", metrics, Needs.METRICS),
    ("GET", "/api/v1/config/server_config", configuration, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/state", state, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/state/readonly", read_only, Needs.OF_BOOKIE),
    ("PUT", f"{BOOKIE}/state/readonly", set_read_only, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/is_ready", is_ready, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/sanity", sanity, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/info", info, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/last_log_mark", last_log_mark, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/list_disk_file", list_disk_file, Needs.OF_BOOKIE),
    ("PUT", f"{BOOKIE}/gc", trigger_gc, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/gc", gc, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/gc_details", gc_details, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/entry_location_compact", compacts_locations, Needs.OF_BOOKIE),
    ("PUT", f"{BOOKIE}/entry_location_compact", compact_locations, Needs.OF_BOOKIE),
    ("PUT", f"{BOOKIE}/gc/suspend_compaction", suspend_compaction, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/gc/suspend_compaction", suspended_compaction, Needs.OF_BOOKIE),
    ("PUT", f"{BOOKIE}/gc/resume_compaction", resume_compaction, Needs.OF_BOOKIE),
    ("GET", f"{BOOKIE}/gc/resume_compaction", suspended_compaction, Needs.OF_BOOKIE),
)
