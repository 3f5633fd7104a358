"""What is remembered of bookies."""

from magnetar.bookie.reading.health import BookieHealth


def test_who_was_slow_is_asked_last_for_a_while() -> None:
    health = BookieHealth(avoid_seconds=30)
    health.avoid("a", 100)
    assert health.ordered("abc", 129) == ["b", "c", "a"]
    assert health.ordered("abc", 130) == ["a", "b", "c"]
    health.avoid("b", 140)
    health.forgive("b")
    assert health.ordered("abc", 141) == ["a", "b", "c"]


def test_only_who_never_sent_a_batch_is_suspected_of_not_knowing_them() -> None:
    health = BookieHealth(avoid_seconds=30)
    health.sent_batch("a")
    assert not health.sends_no_batches("a")
    assert health.sends_no_batches("b")
    assert health.sends_no_batches("b"), "several batches were on their way"
    assert [health.may_send_batches(bookie) for bookie in "abc"] == [True, False, True]
