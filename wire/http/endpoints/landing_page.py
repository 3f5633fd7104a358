"""`/`: a page for people who open the server in a browser, and the same as JSON for other clients.

It shows only what any client can find out by connecting: no topic names, no figures. A server that
asks its clients who they are shows neither its listeners nor its troubles: nobody is asked here.
The page loads nothing else.
"""

from __future__ import annotations

from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

DOCS: Final = "https://pulsar.apache.org/docs/"
LINKS: Final = (
    ("/healthz", "whether it lives"),
    ("/readyz", "whether it takes writes"),
    ("/metrics", "figures, for Prometheus"),
    ("/admin/v2/tenants", "Pulsar's admin REST begins here"),
    ("/admin/v2/mqtt", "sessions, retained messages and rules of MQTT's clients"),
)
HIDDEN: Final = "It asks its clients who they are."
PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{version}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:42em;margin:3em auto;padding:0 1em}}
td{{padding:0 1em 0 0}}</style>
<h1>{version}</h1><p>{state}</p>
<table>{doors}</table>
<ul>{links}</ul>
<p>Clients: <a href="{docs}">Pulsar's</a> and Kafka's, unmodified.
Documentation is in the folder <code>docs</code> beside this server's source.</p>
</html>
"""


async def landing(request: AdminRequest) -> object:
    """HTML for clients that prefer it, as browsers do; JSON for curl and programs."""
    response = _facts(request)
    if "text/html" not in request.request.headers.get("accept", ""):
        return response
    doors = "".join(_row(name, where) for name, where in response["listeners"].items())
    links = "".join(f'<li><a href="{path}">{path}</a>: {text}</li>' for path, text in LINKS)
    return HTMLResponse(
        PAGE.format(
            version=escape(response["version"]),
            state=escape(response.get("trouble", HIDDEN) or "It takes writes."),
            doors=doors,
            links=links,
            docs=DOCS,
        ),
        headers={
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
            "x-frame-options": "DENY",
        },
    )


def _facts(request: AdminRequest) -> dict[str, Any]:
    options = request.options
    links = [path for path, _ in LINKS]
    if request.services.access.asks:
        return {"version": options.version, "listeners": {}, "links": links}
    listeners = {
        "pulsar": options.broker_url,
        "pulsar_tls": options.broker_url_tls,
        "kafka": options.kafka_address,
        "kafka_tls": options.kafka_address_tls,
        "mqtt": options.mqtt_address,
        "mqtt_tls": options.mqtt_address_tls,
        "mqtt_ws": options.mqtt_ws_url,
        "mqtt_wss": options.mqtt_ws_url_tls,
        "http": options.http_url,
        "https": options.http_url_tls,
    }
    return {
        "version": options.version,
        "listeners": {name: where for name, where in listeners.items() if where},
        "trouble": options.readiness(),
        "links": links,
    }


def _row(name: str, where: str) -> str:
    return f"<tr><td>{escape(name)}</td><td><code>{escape(where)}</code></td></tr>"


ROUTES: Final[Table] = (("GET", "", landing, Needs.OPEN),)
