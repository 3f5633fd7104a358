"""What policies refuse message by message."""

import pytest

from magnetar.core.kernel.errors import ConsumerBusy, NotAllowed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.policy.values import DelayedDelivery
from magnetar.core.testing.entries import entry
from magnetar.core.topic.restrictions import check_consumer, check_subscriptions, refused
from magnetar.core.topic.subscription.consumer import Consumer


def policies(size_max: int | None = None, delay_max: int = 0) -> Effective:
    namespace = NamespacePolicies(
        delayed_delivery=DelayedDelivery(max_delivery_delay_in_millis=delay_max)
    )
    return effective(Effective(), namespace, TopicPolicies(max_message_size=size_max))


def test_most_topics_look_at_nothing() -> None:
    assert not policies().checks_messages
    assert policies(size_max=1).checks_messages
    assert policies(delay_max=1).checks_messages


def test_too_large() -> None:
    found = refused([b"x" * 9, b"x" * 11, b"x" * 10], policies(size_max=10), 0)
    assert {at: str(error) for at, error in found.items()} == {
        1: "Exceed maximum message size of 10 bytes"
    }


def test_too_late() -> None:
    run = [entry(), entry(deliver_at_ms=1_500), entry(deliver_at_ms=1_501), entry(deliver_at_ms=1)]
    found = refused(run, policies(delay_max=500), 1_000)
    assert list(found) == [2]
    assert "delivery delay of 500" in str(found[2])


class Crowd:
    """A subscription with so many consumers."""

    def __init__(self, count: int) -> None:
        self.consumers: list[Consumer] = [None] * count  # type: ignore[list-item]  # only counted


def test_consumers_of_all_subscriptions_count_together() -> None:
    name = TopicName.parse("t")
    few = effective(
        Effective(max_consumers_per_topic=3, max_subscriptions_per_topic=2),
        NamespacePolicies(subscription_types=["Shared"]),
        TopicPolicies(),
    )
    check_consumer(name, few, [Crowd(1), Crowd(1)], "Shared")
    with pytest.raises(ConsumerBusy):
        check_consumer(name, few, [Crowd(1), Crowd(2)], "Shared")
    with pytest.raises(NotAllowed, match="type Failover"):
        check_consumer(name, few, [], "Failover")
    check_consumer(name, policies(), [Crowd(1000)], "Failover")
    check_subscriptions(name, few, 1)
    with pytest.raises(NotAllowed):
        check_subscriptions(name, few, 2)
