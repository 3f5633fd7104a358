"""Runs joined, and everybody told of his own."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.log.appends import GATHERED_BYTES_MAX, GATHERED_MAX, Append, joined
from magnetar.core.testing.bench import Outcome

RUNS = st.lists(
    st.tuples(st.lists(st.binary(max_size=3), min_size=1, max_size=4), st.booleans()),
    max_size=8,
)


@given(RUNS)
def test_joined_they_are_what_they_were_apart(runs: list[tuple[list[bytes], bool]]) -> None:
    outcome = [Outcome() for _ in runs]
    waiting = deque(
        Append(list(payloads), [2] * len(payloads) if batches else None, done)
        for (payloads, batches), done in zip(runs, outcome, strict=True)
    )
    made = list(joined(waiting))
    assert len(made) == min(len(runs), 1)
    for whole in made:
        assert whole.payloads == [each for payloads, _ in runs for each in payloads]
        assert whole.size == sum(map(len, whole.payloads))
        counts = [2 if batches else 1 for payloads, batches in runs for _ in payloads]
        assert (whole.counts or [1] * len(whole.payloads)) == counts
        whole.report((7, 100))
    at = 100
    for (payloads, _), done in zip(runs, outcome, strict=True):
        assert done.result == (7, at)
        at += len(payloads)


def test_a_limit_to_joining_and_a_failure_for_all() -> None:
    big = bytes(GATHERED_BYTES_MAX // 2 + 1)
    outcome = [Outcome() for _ in range(3)]
    made = list(joined(deque(Append([big], None, done) for done in outcome)))
    assert len(made) == 3
    error = StorageFailed("no")
    small = Append([b"a"], None, Outcome())
    small.join([made[0]])
    small.report(error)
    assert outcome[0].result is error


def test_so_many_are_joined() -> None:
    count = 3 * (GATHERED_MAX + 1) + 5
    outcome = [Outcome() for _ in range(count)]
    made = list(joined(deque(Append([b"a"], None, done) for done in outcome)))
    assert [len(one.payloads) for one in made] == [GATHERED_MAX + 1] * 3 + [5]
    for place, one in enumerate(made):
        one.report((7, place * (GATHERED_MAX + 1)))
    assert [done.result for done in outcome] == [(7, entry) for entry in range(count)]


def test_the_callers_list_is_not_touched() -> None:
    mine = [b"a"]
    one = Append(mine, None, Outcome())
    one.join([Append([b"b"], None, Outcome())])
    assert mine == [b"a"]
