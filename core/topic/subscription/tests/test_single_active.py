"""Exclusive and Failover: order, permits, rewinds, who is served and who is told."""

from magnetar.core.dispatch.single import active as choose_active
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.bench import Bench, Outcome, settled
from magnetar.core.testing.client import attached
from magnetar.core.topic.subscription.single_active import affordable
from magnetar.core.topic.subscription.subscription import SubscriptionType

EXCLUSIVE, FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER


def test_what_permits_pay_for() -> None:
    singles = Slice(0, 0, [b""] * 5, None)
    assert affordable(singles, 1, 3) == 4
    assert affordable(singles, 3, 9) == 5
    batches = Slice(0, 0, [b""] * 3, [10, 1, 10])
    assert affordable(batches, 0, 1) == 1, "an entry is sent whole"
    assert affordable(batches, 0, 11) == 2
    assert affordable(batches, 1, 2) == 3


async def test_in_order_and_no_more_than_granted(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 25)
    client = await attached(topic, EXCLUSIVE, permits=0)
    await desk.dispatch()
    assert client.take() == []
    client.flow(12)
    await desk.dispatch()
    assert client.take() == places[:12]
    client.flow(100)
    await desk.dispatch()
    assert client.take() == places[12:]
    more = await desk.published(topic, b"y")
    await desk.dispatch()
    assert client.take() == more


async def test_permits_count_messages_and_may_be_overdrawn(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.append([b"a", b"b"], [10, 10], Outcome())
    client = await attached(topic, EXCLUSIVE, permits=5)
    await desk.dispatch()
    assert client.got == [(0, 0)]
    assert client.consumer.permits == -5
    client.flow(5)
    await desk.dispatch()
    assert client.got == [(0, 0)]
    client.flow(1)
    await desk.dispatch()
    assert client.got == [(0, 0), (0, 1)]


async def test_redelivery_is_of_all_that_is_not_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 6)
    client = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    client.take()
    client.ack(places[0], places[1], places[3])
    client.nack(places[4])
    await desk.dispatch()
    assert client.take() == [places[2], places[4], places[5]]


async def test_a_batch_acknowledged_in_part_comes_with_what_is_left(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.append([b"batch"], [3], Outcome())
    client = await attached(topic, EXCLUSIVE, permits=10)
    await desk.dispatch()
    client.ack_bits((0, 0), 0b101, 3)
    client.nack()
    await desk.dispatch()
    assert client.bits == {(0, 0): 0b101}
    assert client.consumer.permits == 10 - 3 - 2


async def test_whoever_comes_next_starts_from_what_is_not_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 4)
    client = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    client.ack(places[0])
    topic.detach(client.consumer)
    other = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    assert other.take() == places[1:]


async def test_a_congested_peer_is_passed_by_until_it_is_looked_at_again(desk: Bench) -> None:
    topic = await desk.topic()
    client = await attached(topic, EXCLUSIVE)
    client.congested = True
    places = await desk.published(topic, b"x")
    await desk.dispatch()
    assert client.take() == []
    client.congested = False
    assert client.consumer.subscription is not None
    client.consumer.subscription.schedule()
    await desk.dispatch()
    assert client.take() == places


async def test_failover_chooses_by_the_name_that_users_write(desk: Bench) -> None:
    """As other brokers do, so that a topic that moves to one keeps its consumer."""
    for number in range(8):
        topic = await desk.topic(f"t{number}")
        clients = [await attached(topic, FAILOVER, name=name) for name in "abc"]
        chosen = choose_active([client.consumer for client in clients], topic.name.full)
        active = [client.consumer for client in clients if client.events[-1] == "active"]
        assert active == [chosen]


async def test_failover_tells_everybody_where_they_stand(desk: Bench) -> None:
    topic = await desk.topic("t-partition-0")
    b = await attached(topic, FAILOVER, name="b")
    assert b.events == ["active"]
    c = await attached(topic, FAILOVER, name="c")
    assert (b.events, c.events) == (["active"], ["passive"])
    a = await attached(topic, FAILOVER, name="a")
    assert (a.events, b.events) == (["active"], ["active", "passive"])
    topic.detach(a.consumer)
    assert b.events[-1] == "active"
    assert c.events == ["passive"]


async def test_failover_hands_over_what_is_not_acknowledged(desk: Bench) -> None:
    topic = await desk.topic("t-partition-0")
    places = await desk.published(topic, *[b"x"] * 4)
    b = await attached(topic, FAILOVER, name="b")
    await desk.dispatch()
    assert b.take() == places
    b.ack(places[0])
    a = await attached(topic, FAILOVER, name="a")
    await desk.dispatch()
    assert (a.take(), b.take()) == (places[1:], [])


async def test_priority_goes_before_names(desk: Bench) -> None:
    topic = await desk.topic("t-partition-0")
    await attached(topic, FAILOVER, name="a", priority=1)
    b = await attached(topic, FAILOVER, name="b", priority=0)
    assert b.events == ["active"]


async def test_the_end_is_told_once_all_is_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x", b"y")
    client = await attached(topic, EXCLUSIVE)
    await topic.terminate()
    await desk.dispatch()
    assert client.events == []
    assert client.consumer.subscription is not None
    client.consumer.subscription.ack_to(client.consumer, places[1], None)
    await desk.dispatch()
    await desk.dispatch()
    assert client.events == ["end"]
    assert client.consumer.messages_acked == 2


async def test_a_cold_backlog_is_read_from_storage(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 35)
    await topic.close()
    again = await desk.topic()
    client = await attached(again, EXCLUSIVE)
    await desk.dispatch()
    assert client.take() == places
    await settled()
