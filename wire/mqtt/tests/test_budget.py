"""Memory of all clients for one purpose."""

from magnetar.wire.mqtt.budget import MemoryBudget


def test_no_more_is_taken_than_there_is() -> None:
    budget = MemoryBudget(10)
    assert budget.take(6)
    assert not budget.take(5)
    assert budget.take(4)
    budget.give_back(6)
    assert budget.bytes == 4
    assert budget.take(5)
