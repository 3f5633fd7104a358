import pytest

from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.recovery_control import RecoveryControl
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite

ROOT = "/ledgers/underreplication"


async def test_switching_it_twice_is_no_error() -> None:
    store = MemoryMetadata()
    control = RecoveryControl(store, await initialize_cluster(store, "one"))
    for enabled in (True, False, False, True):
        await control.switch(enabled=enabled)
        assert await control.is_enabled() is enabled


async def test_an_audit_is_asked_for_by_the_delay_that_is_set() -> None:
    store = MemoryMetadata()
    control = RecoveryControl(store, await initialize_cluster(store, "one"))
    with pytest.raises(NotAllowed, match="nobody is the auditor"):
        await control.trigger_audit()
    await overwrite(store, f"{ROOT}/auditorelection/V_0000000001", b'bookieId: "first"\n')
    assert await control.delay() is None
    await control.set_delay(60)
    before = await store.get(f"{ROOT}/lostBookieRecoveryDelay")
    assert await control.trigger_audit() == "first"
    after = await store.get(f"{ROOT}/lostBookieRecoveryDelay")
    assert before is not None
    assert after is not None
    assert (after.value, after.version) == (b"60", before.version + 1)
    await control.switch(enabled=False)
    with pytest.raises(NotAllowed, match="disabled"):
        await control.trigger_audit()


async def test_what_waits() -> None:
    store = MemoryMetadata()
    cluster = await initialize_cluster(store, "one")
    control = RecoveryControl(store, cluster)
    assert await control.waiting() == {}
    marks = UnderReplication(store, cluster)
    await marks.prepare()
    await marks.mark(7, ["b1", "b2"], 1)
    assert await control.waiting() == {7: ("b1", "b2")}
