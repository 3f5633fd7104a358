"""The memory of all subscriptions together."""

from magnetar.core.topic.subscription.delayed.deliveries import DelayedDeliveries
from magnetar.core.topic.subscription.delayed.memory import DelayedMemory


def test_who_knows_most_gives_up_some() -> None:
    memory = DelayedMemory(100)
    many, few = DelayedDeliveries(memory, 1_000), DelayedDeliveries(memory, 1_000)
    for entry_id in range(80):
        many.add((1, entry_id), 10**9)
    for entry_id in range(50):
        few.add((2, entry_id), 10**9)
    assert memory.times == many.known + few.known <= 100
    assert (len(many), len(few), few.known) == (80, 50, 50)
    few.clear()
    assert memory.times == many.known
    many.take_due(10**9, 1_000)
    many.discard_to((1, 100))
    assert (memory.times, memory._holders, memory.room) == (0, set(), 100)


def test_thousands_with_a_few_each() -> None:
    memory = DelayedMemory(100)
    holders = [DelayedDeliveries(memory, 1_000) for _ in range(300)]
    for number, one in enumerate(holders):
        one.add((number, 0), 10**9)
        assert memory.times <= 100
    assert sum(one.known for one in holders) == memory.times
    assert all(len(one) == 1 for one in holders)
