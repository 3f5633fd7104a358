"""What an AutoRecovery alone serves."""

import httpx

from magnetar.wire.http.bookie.recovery_paths import application
from magnetar.wire.http.metrics.exposition import counter
from magnetar.wire.http.options import HostNames, HttpOptions
from magnetar.wire.http.services import HttpServices


async def test_figures_and_whether_it_lives() -> None:
    options = HttpOptions(version="Magnetar 1", hosts=HostNames(("here",)))
    services = HttpServices(None, options, lambda: [counter("copied", "Entries", 7)])
    transport = httpx.ASGITransport(application(services))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        assert (await client.get("/heartbeat")).text == "OK\n"
        assert "\ncopied 7\n" in (await client.get("/metrics")).text
        assert (await client.get("/api/v1/bookie/state")).status_code == 404
