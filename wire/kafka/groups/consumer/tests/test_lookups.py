"""What there is of the topics that somebody wants."""

from magnetar.core.broker import administration
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka.groups.consumer.lookups import LISTED_SECONDS, Lookups


async def test_names_and_patterns() -> None:
    stores = Stores()
    async with running(stores) as broker:
        lookups = Lookups(broker)
        await administration.create_partitioned(broker, TopicName.parse("logs-a"), 3)
        await broker.topic(TopicName.parse("single"))
        found = await lookups.find({"single", "gone", "?/"}, {"logs-.*", "none"})
        assert set(found.ids) == {"single", "logs-a"}
        assert found.sizes == {found.ids["single"]: 1, found.ids["logs-a"]: 3}
        assert found.matches == {"logs-.*": frozenset({"logs-a"}), "none": frozenset()}
        await administration.create_partitioned(broker, TopicName.parse("logs-b"), 1)
        assert "logs-b" not in (await lookups.find(set(), {"logs-.*"})).ids
        stores.clock.forward(LISTED_SECONDS)
        assert "logs-b" in (await lookups.find(set(), {"logs-.*"})).ids
