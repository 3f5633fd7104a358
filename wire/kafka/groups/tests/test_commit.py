"""Commits as a cursor keeps them."""

from magnetar.wire.kafka.groups.commit import CommittedPosition, committed, order_of, stored


def test_there_and_back() -> None:
    for commit in (
        CommittedPosition(7),
        CommittedPosition(0, 3, "a note", 5, 6),
        CommittedPosition(1, note="kafka.note "),
    ):
        assert committed(stored(commit, (1, 2), 9), (1, 2)) == commit


def test_somewhere_else_it_means_nothing() -> None:
    assert committed(stored(CommittedPosition(7), (1, 2), 9), (1, 3)) is None
    assert committed({}, (1, 2)) is None
    assert committed({"somebody-else's": 1}, (1, 2)) is None


def test_the_order_of_a_commit_outlives_its_position() -> None:
    assert order_of({}) == 0
    assert order_of(stored(CommittedPosition(7), (1, 2), 9)) == 9


def test_commits_of_before_there_were_orders_go_by_their_time() -> None:
    old = stored(CommittedPosition(7, committed_ms=5), (1, 2), 0)
    del old["kafka.order"]
    assert order_of(old) == 5_000_000
