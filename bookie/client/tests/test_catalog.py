"""The ledgers of a whole server's own metadata store; `test_collector.py` asks for many."""

import pytest

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.core.ports.metadata_store import ABSENT


async def test_what_has_no_node_is_deleted() -> None:
    metadata = DictMetadata()
    catalog = ServerCatalog(metadata)
    assert await catalog.deleted([]) == []
    made = ledger_metadata.fresh(("b",), (1, 1), {"pulsar/managed-ledger": b"t/n/x"}, 0, 1)
    made.state, made.lastEntryId = ledger_metadata.CLOSED, 4
    await metadata.put(ledger_metadata.path_of(7), ledger_metadata.encode(made), ABSENT)
    plain = ledger_metadata.fresh(("b",), (1, 1), {}, 0, 1)
    await metadata.put(ledger_metadata.path_of(8), ledger_metadata.encode(plain), ABSENT)
    assert await catalog.deleted([6, 7, 8, 9]) == [6, 9]
    assert await catalog.last_entries() == {7: 4, 8: -1}
    assert await catalog.owner(7) == "t/n/x"
    assert await catalog.owner(8) == "nobody known"
    with pytest.raises(LedgerNotFound):
        await catalog.owner(9)
