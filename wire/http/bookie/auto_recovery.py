"""The paths about AutoRecovery, answered from the cluster's metadata and changing it.

Texts are Apache's (`LostBookieRecoveryDelayService.java` and its neighbours of 4.18).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.ports.bookie_administration import RecoveryAdministration
from magnetar.wire.http.bookie.cluster import of_cluster
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, plain_text


class DelayBody(Struct):
    delay_seconds: int = -1


def _recovery(request: AdminRequest) -> RecoveryAdministration:
    return of_cluster(request).recovery


async def status(request: AdminRequest) -> object:
    return {"enabled": await _recovery(request).is_enabled()}


async def set_status(request: AdminRequest) -> object:
    if not request.texts("enabled"):
        raise HTTPException(400, "the parameter `enabled` is missing")
    await _recovery(request).switch(enabled=request.flag("enabled"))
    return await status(request)


async def list_under_replicated(request: AdminRequest) -> object:
    """`missingreplica` and `excludingmissingreplica` name a bookie; `printmissingreplica`, whatever
    its value, adds the bookies.
    """
    including, excluding = request.text("missingreplica"), request.text("excludingmissingreplica")
    found = {
        ledger_id: list(missing)
        for ledger_id, missing in (await _recovery(request).waiting()).items()
        if (not including or including in missing) and (not excluding or excluding not in missing)
    }
    if not found:
        raise HTTPException(404, "No under replicated ledgers found")
    if request.texts("printmissingreplica"):
        return {str(ledger_id): missing for ledger_id, missing in found.items()}
    return list(found)


async def who_is_auditor(request: AdminRequest) -> Response:
    auditor = (await of_cluster(request).replication()).auditor
    if auditor is None:
        raise HTTPException(404, "No auditor elected")
    return plain_text(f"Auditor: {auditor}")


async def trigger_audit(request: AdminRequest) -> Response:
    await _recovery(request).trigger_audit()
    return plain_text("Success trigger audit.")


async def delay(request: AdminRequest) -> Response:
    found = await _recovery(request).delay()
    if found is None:
        raise HTTPException(404, "no delay is set; the first auditor will set one")
    return plain_text(f"lostBookieRecoveryDelay value: {found}")


async def set_delay(request: AdminRequest) -> Response:
    seconds = (await request.json(DelayBody)).delay_seconds
    if seconds < 0:
        raise HTTPException(400, "delay_seconds is missing, or negative")
    await _recovery(request).set_delay(seconds)
    return plain_text(f"Success set lostBookieRecoveryDelay to {seconds}")


ROOT: Final = "/api/v1/autorecovery"
ROUTES: Final[Table] = (
    ("GET", f"{ROOT}/status", status, Needs.OF_BOOKIE),
    ("PUT", f"{ROOT}/status", set_status, Needs.OF_BOOKIE),
    ("GET", f"{ROOT}/list_under_replicated_ledger", list_under_replicated, Needs.OF_BOOKIE),
    ("GET", f"{ROOT}/who_is_auditor", who_is_auditor, Needs.OF_BOOKIE),
    ("PUT", f"{ROOT}/trigger_audit", trigger_audit, Needs.OF_BOOKIE),
    ("GET", f"{ROOT}/lost_bookie_recovery_delay", delay, Needs.OF_BOOKIE),
    ("PUT", f"{ROOT}/lost_bookie_recovery_delay", set_delay, Needs.OF_BOOKIE),
)
