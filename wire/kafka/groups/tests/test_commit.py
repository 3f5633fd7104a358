"""Commits as a cursor keeps them."""

from magnetar.wire.kafka.groups.commit import CommittedPosition, committed, stored


def test_there_and_back() -> None:
    for commit in (
        CommittedPosition(7),
        CommittedPosition(0, 3, "a note", 5, 6),
        CommittedPosition(1, note="kafka.note "),
    ):
        assert committed(stored(commit, (1, 2)), (1, 2)) == commit


def test_somewhere_else_it_means_nothing() -> None:
    assert committed(stored(CommittedPosition(7), (1, 2)), (1, 3)) is None
    assert committed({}, (1, 2)) is None
    assert committed({"somebody-else's": 1}, (1, 2)) is None
