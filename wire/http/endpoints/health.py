"""Health checks: the process is alive (`/healthz`), accepts writes (`/readyz`), delivers messages.

Orchestrators restart a process that is not alive and send no work to one that is not ready. A full
disk is the second case, so `/healthz` ignores storage. Both cost nothing, and so does the path that
load balancers ask Pulsar's brokers: `/status.html` says what `/readyz` does. The third is Pulsar's,
`/admin/v2/brokers/health`: a message is stored and read back (`round_trip.py`).
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, plain_text, refusal


async def healthz(_ask: AdminRequest) -> Response:
    """Always `ok`: any answer shows that the process is alive."""
    return plain_text("ok")


async def readyz(request: AdminRequest) -> Response:
    """`ok`; or 503 with a reason while writes are refused."""
    return _readiness(request, "ok")


async def status(request: AdminRequest) -> Response:
    """The same in Pulsar's words (`VipStatus.java` of 4.2, where a file has to exist for it)."""
    return _readiness(request, "OK")


def _readiness(request: AdminRequest, words: str) -> Response:
    reason = request.options.readiness()
    return plain_text(words) if reason is None else refusal(503, reason)


async def health(request: AdminRequest) -> Response:
    """`ok` once a message came back from storage; otherwise 500 with a reason."""
    reason = request.options.readiness() or await request.services.health.trouble(request.broker)
    return plain_text("ok") if reason is None else refusal(500, reason)


ROUTES: Final[Table] = (
    ("GET", "/healthz", healthz, Needs.HEALTH),
    ("GET", "/readyz", readyz, Needs.HEALTH),
    ("GET", "/status.html", status, Needs.HEALTH),
)
