"""A few ledgers kept open."""

from magnetar.core.ledger.read.readers import READERS_MAX, Readers
from magnetar.core.testing.ledgers import MemoryLedgers


async def test_the_oldest_goes_first() -> None:
    store = MemoryLedgers()
    ids = [(await store.create({})).ledger_id for _ in range(READERS_MAX + 1)]
    readers = Readers(store, "t")
    for ledger_id in ids:
        assert readers.at_once(ledger_id) is None
        assert (await readers.get(ledger_id)).ledger_id == ledger_id
        assert readers.at_once(ledger_id) is await readers.get(ledger_id)
    assert sorted(readers._open) == ids[1:]
    readers.forget(ids[1])
    readers.forget(ids[1])
    assert sorted(readers._open) == ids[2:]
    readers.clear()
    assert readers._open == {}


async def test_what_was_left_unsealed_is_sealed() -> None:
    store = MemoryLedgers()
    ledger = await store.create({})
    await Readers(store, "t").get(ledger.ledger_id)
    assert ledger.closed
