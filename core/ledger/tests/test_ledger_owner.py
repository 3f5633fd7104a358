"""What says that it is another's is let alone."""

import pytest

from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.core.ledger.ledger_owner import delete_own, is_anothers, open_own, properties_of
from magnetar.core.testing.ledgers import MemoryLedgers

OURS, THEIRS = "t/n/persistent/ours", "t/n/persistent/theirs"


async def test_ledgers_of_others_are_neither_opened_nor_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryLedgers()
    theirs = (await store.create(properties_of(THEIRS))).ledger_id
    assert await is_anothers(store, theirs, OURS)
    with pytest.raises(LedgerNotFound):
        await open_own(store, theirs, OURS)
    await delete_own(store, theirs, OURS)
    assert not store.ledgers[theirs].closed
    assert set(caplog.messages) == {
        f"persistent://t/n/ours: ledger {theirs} belongs to persistent://t/n/theirs, "
        "and is left alone"
    }


@pytest.mark.parametrize("properties", [properties_of(OURS), {}], ids=["named", "unnamed"])
async def test_ours_are(properties: dict[str, bytes]) -> None:
    store = MemoryLedgers()
    ours = (await store.create(properties)).ledger_id
    assert not await is_anothers(store, ours, OURS)
    assert (await open_own(store, ours, OURS)).ledger_id == ours
    assert store.ledgers[ours].closed
    for _ in range(2):  # one that is gone is no error
        await delete_own(store, ours, OURS)
    assert ours not in store.ledgers
    with pytest.raises(LedgerNotFound):
        await is_anothers(store, ours, OURS)
