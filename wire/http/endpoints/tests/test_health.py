"""Alive, and ready or not."""

import msgspec

from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting


async def test_a_server_that_is_well(visitor: Visitor) -> None:
    for path in ("/healthz", "/readyz", "/admin/v2/brokers/health", "/admin/v2/brokers/ready"):
        answer = await visitor.ask("GET", path)
        assert (answer.status_code, answer.text) == (200, "ok")
    assert (await visitor.ask("GET", "/status.html")).text == "OK"


async def test_a_server_that_takes_no_writes_lives_and_says_why() -> None:
    options = msgspec.structs.replace(OPTIONS, readiness=lambda: "the disk is full")
    async with visiting(options) as visitor:
        assert (await visitor.ask("GET", "/healthz")).text == "ok"
        for path in ("/readyz", "/status.html", "/admin/v2/brokers/ready"):
            assert await visitor.fails(503, "GET", path) == "the disk is full"
        assert await visitor.fails(500, "GET", "/admin/v2/brokers/health") == "the disk is full"
