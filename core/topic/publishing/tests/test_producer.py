"""A producer's books."""

from magnetar.core.kernel.rates import Inflow
from magnetar.core.testing.client import ClientProducer
from magnetar.core.topic.publishing.producer import AccessMode


def test_what_it_counts() -> None:
    producer = ClientProducer("p", AccessMode.EXCLUSIVE).producer
    assert (producer.name, producer.request.mode.value) == ("p", "Exclusive")
    producer.messages_in, producer.bytes_in, producer.chunks_in = 3, 20, 1
    assert producer.inflow() == Inflow(3, 20, 1)
    assert producer.rates.per_second == Inflow()
