"""What AutoRecovery is told over HTTP, and says."""

from magnetar.wire.http.bookie.tests.bookies import visiting

ROOT = "/api/v1/autorecovery"


async def test_it_is_suspended_and_goes_on() -> None:
    async with visiting() as visitor:
        assert await visitor.get(f"{ROOT}/status") == {"enabled": True}
        assert await visitor.does("PUT", f"{ROOT}/status?enabled=false") == {"enabled": False}
        assert "disabled" in await visitor.fails(412, "PUT", f"{ROOT}/trigger_audit")
        assert await visitor.does("PUT", f"{ROOT}/status?enabled=true") == {"enabled": True}
        await visitor.fails(400, "PUT", f"{ROOT}/status")


async def test_ledgers_that_wait_for_repair() -> None:
    async with visiting() as visitor:
        path = f"{ROOT}/list_under_replicated_ledger"
        assert "No under replicated" in await visitor.fails(404, "GET", path)
        assert visitor.bookie.cluster is not None
        visitor.bookie.cluster.recovery.missing = {1: ("b1",), 2: ("b2", "b3")}
        assert await visitor.get(path) == [1, 2]
        assert await visitor.get(f"{path}?missingreplica=b2") == [2]
        assert await visitor.get(f"{path}?excludingmissingreplica=b2&printmissingreplica=") == {
            "1": ["b1"]
        }


async def test_the_auditor_and_the_delay() -> None:
    async with visiting() as visitor:
        said = await visitor.client.get(f"{ROOT}/who_is_auditor")
        assert said.text == "Auditor: b1"
        assert (await visitor.client.put(f"{ROOT}/trigger_audit")).text == "Success trigger audit."
        assert visitor.bookie.cluster is not None
        assert visitor.bookie.cluster.recovery.audits == 1
        visitor.bookie.cluster.auditor = None
        await visitor.fails(404, "GET", f"{ROOT}/who_is_auditor")
        path = f"{ROOT}/lost_bookie_recovery_delay"
        await visitor.fails(404, "GET", path)
        await visitor.fails(400, "PUT", path, {})
        said = await visitor.client.put(path, json={"delay_seconds": 60})
        assert said.text == "Success set lostBookieRecoveryDelay to 60"
        assert (await visitor.client.get(path)).text == "lostBookieRecoveryDelay value: 60"


async def test_what_takes_hours_is_a_command() -> None:
    async with visiting() as visitor:
        for path in ("bookie", "decommission"):
            assert "magnetar bookie" in await visitor.fails(405, "PUT", f"{ROOT}/{path}", {})
