"""What hears that a batch is stored, or is not."""

from __future__ import annotations

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.bench import settled
from magnetar.wire.kafka.conftest import Stage, produce_request
from magnetar.wire.kafka.tests.batch import batch


async def test_a_batch_that_was_not_stored_may_come_again(slow_stage: Stage) -> None:
    """So may all behind it; their numbers are as if they had never come."""
    client = await slow_stage.client("t")
    sent = [batch(b"a", producer=(9, 0, sequence)) for sequence in range(3)]

    async def stored() -> list[tuple[int, int]]:
        for one in sent:
            client.ask(produce_request("t", one), 9)
        await settled()
        slow_stage.stores.ledgers.sync()
        await settled()
        parts = [each.responses[0].partition_responses[0] for each in client.receive()]
        return [(part.error_code, part.base_offset) for part in parts]

    for one in sent:
        client.ask(produce_request("t", one), 9)
    await settled()
    for ledger in slow_stage.stores.ledgers.ledgers.values():
        ledger.fail(StorageFailed("no"))
    await settled()
    assert all(each.responses[0].partition_responses[0].error_code for each in client.receive())
    first = await stored()
    assert [code for code, _ in first] == [0, 0, 0]
    assert await stored() == first, "these were taken for what they are"
