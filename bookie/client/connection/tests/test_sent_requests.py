"""Which request a response belongs to."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.client.connection.sent_requests import SentAdds, SentRequest, SentRequests
from magnetar.bookie.rpc.messages import ReadEntry, Status
from magnetar.core.kernel.errors import StorageFailed

GONE = StorageFailed("gone")


class Sent:
    """Requests, and how each ended."""

    def __init__(self) -> None:
        self.requests = SentRequests()
        self.ends: list[tuple[str, object]] = []

    def add(
        self, name: str, first: int, last: int, ledger_id: int = 1, deadline: float = 9
    ) -> None:
        done = lambda result: self.ends.append((name, result))  # noqa: E731
        self.requests.add(SentAdds(1, first, last, 10, deadline, done))

    def ask(self, name: str, key: object, deadline: float = 9) -> None:
        replied = lambda result: self.ends.append((name, result))  # noqa: E731
        self.requests.request(key, SentRequest(deadline, replied))


def test_a_row_of_responses_ends_all_runs_that_it_covers() -> None:
    sent = Sent()
    sent.add("a", 0, 2)
    sent.add("b", 3, 3)
    sent.add("c", 4, 9)
    sent.requests.adds_answered(Status.OK, 1, 0, 6)
    assert sent.ends == [("a", Status.OK), ("b", Status.OK)]
    assert sent.requests.adds_bytes == 10
    sent.requests.adds_answered(Status.OK, 1, 6, 4)
    assert sent.ends[2:] == [("c", Status.OK)]
    assert not sent.requests


def test_a_failure_ends_its_run_only() -> None:
    sent = Sent()
    sent.add("a", 0, 2)
    sent.add("b", 3, 4)
    sent.requests.adds_answered(Status.IO_ERROR, 1, 1, 1)
    sent.requests.adds_answered(Status.OK, 1, 2, 3)
    assert sent.ends == [("a", Status.IO_ERROR), ("b", Status.OK)]


def test_the_same_entry_twice_is_matched_in_order() -> None:
    """A writer's add, and a recovery's of the same process."""
    sent = Sent()
    sent.add("writer", 5, 5)
    sent.add("recovery", 5, 5)
    sent.requests.adds_answered(Status.FENCED, 1, 5, 1)
    sent.requests.adds_answered(Status.OK, 1, 5, 1)
    assert sent.ends == [("writer", Status.FENCED), ("recovery", Status.OK)]


def test_responses_that_belong_to_nothing() -> None:
    sent = Sent()
    sent.add("a", 0, 1)
    for _ in range(3):
        sent.requests.adds_answered(Status.OK, 1, 0, 1)
        sent.requests.adds_answered(Status.OK, 2, 0, 5)
        sent.requests.answered("nobody", ReadEntry(Status.OK, 1, 0))
    assert sent.ends == []


def test_what_is_late_ends_and_its_response_is_ignored() -> None:
    sent = Sent()
    sent.add("a", 0, 0, deadline=1)
    sent.ask("read", (1, 0), deadline=1)
    sent.add("b", 1, 1, deadline=2)
    assert not sent.requests.expire(0.9, GONE)
    assert sent.requests.expire(1.0, GONE)
    assert sent.ends == [("a", GONE), ("read", GONE)]
    sent.ask("again", (1, 0))
    late, own = ReadEntry(Status.NO_ENTRY, 1, 0), ReadEntry(Status.OK, 1, 0)
    sent.requests.answered((1, 0), late)
    sent.requests.answered((1, 0), own)
    sent.requests.adds_answered(Status.OK, 1, 0, 2)
    assert sent.ends[2:] == [("again", own), ("b", Status.OK)]


def test_the_end_of_a_connection_ends_all_and_what_it_causes_is_of_the_next_one() -> None:
    sent = Sent()

    def failed(result: object) -> None:
        sent.ends.append(("first", result))
        sent.add("next", 0, 0)

    sent.requests.add(SentAdds(1, 0, 0, 10, 9, failed))
    sent.add("second", 1, 1)
    sent.requests.fail_all(GONE)
    assert sent.ends == [("first", GONE), ("second", GONE)]
    sent.requests.adds_answered(Status.OK, 1, 0, 1)
    assert sent.ends[2:] == [("next", Status.OK)]
    assert sent.requests.adds_bytes == 0


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_in_any_order_each_run_ends_with_its_last_response(sizes, chance) -> None:
    sent = Sent()
    first, left = 0, {}
    for number, size in enumerate(sizes):
        sent.add(str(number), first, first + size - 1)
        left[str(number)] = set(range(first, first + size))
        first += size
    ids = list(range(first))
    chance.shuffle(ids)
    expected = []
    for entry_id in ids:
        for name, waiting in left.items():
            if entry_id in waiting:
                waiting.discard(entry_id)
                if not waiting:
                    expected.append((name, Status.OK))
        sent.requests.adds_answered(Status.OK, 1, entry_id, 1)
        assert sent.ends == expected
    assert not sent.requests
