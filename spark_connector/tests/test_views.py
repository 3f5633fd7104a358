"""Ids of messages as Pulsar's clients write them."""

import pulsar

from magnetar.spark_connector.views import message_id


def test_an_id_is_pulsars() -> None:
    found = pulsar.MessageId.deserialize(message_id(1 << 40, 300, 3, 0))
    assert (found.ledger_id(), found.entry_id()) == (1 << 40, 300)
    assert (found.partition(), found.batch_index()) == (3, 0)
    bare = pulsar.MessageId.deserialize(message_id(1, 2, None, None))
    assert (bare.partition(), bare.batch_index()) == (-1, -1)
