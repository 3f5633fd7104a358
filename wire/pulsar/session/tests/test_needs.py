"""What producers and consumers need."""

from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.needs import allows, to_consume, to_produce

PARTITION = TopicName.parse("t-partition-3")


async def test_a_partition_needs_what_its_topic_needs(guarded_stage: Stage) -> None:
    await guarded_stage.permit(alice="produce")
    client = (await guarded_stage.player(name="alice")).session.client
    assert to_produce(PARTITION)[2] == "persistent://public/default/t"
    assert allows(client, to_produce(PARTITION))
    assert not allows(client, to_consume(PARTITION, "s"))


async def test_a_server_without_a_judge_asks_for_nothing(stage: Stage) -> None:
    client = (await stage.player()).session.client
    assert allows(client, to_consume(PARTITION, "s"))
