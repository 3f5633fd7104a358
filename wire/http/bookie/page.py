"""`/`: a page for people who open a bookie in a browser, and the same as JSON for other clients.

The page loads nothing else.
"""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.responses import HTMLResponse

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

LINKS: Final = (
    ("/heartbeat", "whether it lives"),
    ("/metrics", "figures, for Prometheus"),
    ("/api/v1/bookie/state", "whether it takes writes"),
    ("/api/v1/bookie/info", "room on its disk"),
    ("/api/v1/bookie/gc_details", "garbage collection"),
    ("/api/v1/bookie/list_disk_file", "its files"),
    ("/api/v1/bookie/last_log_mark", "where a replay would begin"),
    ("/api/v1/config/server_config", "its settings"),
)
OF_CLUSTER: Final = (
    ("/api/v1/bookie/list_bookies?print_hostnames=true", "bookies that take writes"),
    ("/api/v1/bookie/cluster_info", "the cluster"),
    ("/api/v1/ledger/list?page=1", "ledgers"),
)
PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>bookie {bookie_id}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:42em;margin:3em auto;padding:0 1em}}
td{{padding:0 1em 0 0}}</style>
<h1>Bookie <code>{bookie_id}</code></h1>
<p>{version}. {state}</p>
<table>{rows}</table>
<ul>{links}</ul>
<p>Clients and tools of Apache BookKeeper use it, unmodified.</p>
</html>
"""


async def landing(request: AdminRequest) -> object:
    """HTML for clients that prefer it, as browsers do; JSON for curl and programs."""
    bookie = request.services.bookie
    state = bookie.state()
    links = LINKS if bookie.cluster is None else (*LINKS, *OF_CLUSTER)
    facts = {
        "clients": state.address,
        "cluster": "none" if bookie.cluster is None else _registered(state.registered),
        "free": f"{state.free_bytes:,} of {state.total_bytes:,} bytes",
    }
    version = request.options.version
    if "text/html" not in request.request.headers.get("accept", ""):
        return {
            "version": version,
            "bookieId": state.bookie_id,
            "readOnly": state.read_only,
            **facts,
            "links": [path for path, _ in links],
        }
    items = "".join(
        f'<li><a href="{escape(path)}">{escape(path)}</a>: {about}</li>' for path, about in links
    )
    rows = "".join(
        f"<tr><td>{name}</td><td>{escape(said)}</td></tr>" for name, said in facts.items()
    )
    return HTMLResponse(
        PAGE.format(
            bookie_id=escape(state.bookie_id),
            version=escape(version),
            state="It serves reads only." if state.read_only else "It takes writes.",
            rows=rows,
            links=items,
        ),
        headers={
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
            "x-frame-options": "DENY",
        },
    )


def _registered(registered: bool) -> str:
    return "registered" if registered else "not registered now: clients do not find it"


ROUTES: Final[Table] = (("GET", "", landing, Needs.OF_BOOKIE),)
