"""Room for one more, or none; and what is left of those whose connection is gone."""

import gc

import pytest

from magnetar.core.kernel.errors import NotAllowed
from magnetar.wire.pulsar.session.attachment_limit import ATTACHED_MAX, check_attached
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.consumers import consume
from magnetar.wire.pulsar.session.producers import attached_producer
from magnetar.wire.pulsar.tests import peer


def test_the_last_place_and_none_behind_it() -> None:
    check_attached(range(ATTACHED_MAX - 2), [1])
    with pytest.raises(NotAllowed, match="100000"):
        check_attached(range(ATTACHED_MAX - 1), [1])


def attached_here() -> int:
    """How many there are in this process, whether anybody knows them or not."""
    kinds = (attached_producer.AttachedProducer, consume.AttachedConsumer)
    return sum(isinstance(each, kinds) for each in gc.get_objects())


@pytest.mark.parametrize(
    "topic", ["persistent://public/default/t", "non-persistent://public/default/t"]
)
async def test_nothing_is_left_to_the_garbage_collector(stage: Stage, topic: str) -> None:
    """It does not look while nothing is made, and they may be hundreds of megabytes."""
    client = await stage.player()
    gc.collect()
    gc.disable()
    try:
        before = attached_here()
        await client.says(
            peer.producer(1, 1, topic),
            peer.subscribe(2, 2, topic, "s"),
            peer.subscribe(3, 3, topic, "r", durable=False),
        )
        assert attached_here() == before + 3
        client.session.closed("it went")
        await client.receive()
        assert attached_here() == before
    finally:
        gc.enable()
