"""A transactional id that is new: nothing of it is being carried out."""

from __future__ import annotations

import msgspec

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.testing.broker import Stores
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.transaction import Transaction


async def test_nothing_is_decided_at_first() -> None:
    decode = msgspec.json.Decoder(Transaction).decode
    record = OwnedRecord(Stores().metadata, "/t", msgspec.json.encode, decode)
    slot = TransactionSlot("t", record)
    assert slot.rest.is_set()
    assert slot.seen.is_set()
    assert slot.transaction is None
    assert not slot.over
