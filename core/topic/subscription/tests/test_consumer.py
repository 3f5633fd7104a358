"""Permits and what is unacknowledged, as plain arithmetic."""

from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.client import ClientConsumer
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest


def consumer(unacked_max: int = 0) -> Consumer:
    return Consumer(1, ConsumerRequest(name="c"), ClientConsumer(), unacked_max, 0)


def test_an_entry_costs_what_is_left_of_it() -> None:
    one = consumer()
    one.grant(10, 5)
    sent = one.send(Slice(0, 0, [b"ab", b"c"], [4, 1]), [0, 2], {0: 0b0011}, 7)
    assert sent == 3
    assert (one.permits, one.messages_out, one.bytes_out) == (7, 3, 3)
    assert one.entries_out == 2
    assert (one.messages_redelivered, one.last_flow_ms, one.last_consumed_ms) == (1, 5, 7)
    one.grant(10, 8)
    one.send(Slice(0, 2, [b"d"], None), None, None, 9)
    assert (one.first_flow_ms, one.first_sent_ms) == (5, 7)


def test_blocked_at_the_limit_and_free_at_half_of_it() -> None:
    one = consumer(4)
    one.grant(1, 0)
    one.hold(4)
    one.grant(7, 0)
    assert (one.ready, one.permits, one.withheld) == (False, 1, 7)
    one.release(1)
    assert one.blocked
    one.release(1)
    assert (one.ready, one.permits, one.withheld) == (True, 8, 0)


def test_a_limit_that_changes() -> None:
    one = consumer(4)
    one.hold(4)
    one.grant(7, 0)
    one.limit_unacked(5)
    assert one.blocked
    one.limit_unacked(0)
    assert (one.blocked, one.permits) == (False, 7)
    one.limit_unacked(3)
    assert one.blocked
