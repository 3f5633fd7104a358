"""Whether the process lives (`/healthz`), can take writes (`/readyz`), and does what it is for.

Orchestrators restart what does not live and send no work to what is not ready: a full disk is the
second, so `/healthz` says nothing of storage. Both cost nothing. The third is Pulsar's own check,
`/admin/v2/brokers/health`: a message is stored and read back (`round_trip.py`).
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import Table, plain_text, refusal


async def healthz(_ask: AdminRequest) -> Response:
    """That this is answered is the answer."""
    return plain_text("ok")


async def readyz(request: AdminRequest) -> Response:
    """503 with a reason while writes are refused."""
    reason = request.options.readiness()
    return plain_text("ok") if reason is None else refusal(503, reason)


async def health(request: AdminRequest) -> Response:
    """500 with a reason unless a message comes back."""
    reason = request.options.readiness() or await request.front.health.trouble(request.broker)
    return plain_text("ok") if reason is None else refusal(500, reason)


ROUTES: Final[Table] = (("GET", "/healthz", healthz), ("GET", "/readyz", readyz))
