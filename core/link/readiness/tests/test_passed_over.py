"""Who was passed over comes first, and nobody twice before."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.link.readiness.passed_over import PassedOver


def test_others_come_before_clients_and_who_waits_longest_first() -> None:
    passed = PassedOver()
    assert not passed
    passed.note([(1, 1), (2, 1), (3, 1), (9, 1)], 1, are_all=True)
    assert passed
    ready = [(1, 1), (3, 1), (4, 1), (2, 5), (9, 1)]
    assert passed.come_first(ready, {1, 2, 3, 4}) == [(9, 1), (2, 5), (3, 1), (1, 1), (4, 1)]
    passed.forget(2)
    passed.note([(9, 1), (3, 1)], 2, are_all=False)
    assert not passed


def test_who_is_not_ready_any_more_is_forgotten() -> None:
    passed = PassedOver()
    passed.note([(1, 1), (2, 1)], 0, are_all=True)
    passed.note([(3, 1)], 1, are_all=True)
    assert not passed


@given(count=st.integers(1, 40), at_once=st.integers(1, 9))
def test_of_those_that_stay_ready_all_are_served_in_turn(count: int, at_once: int) -> None:
    passed = PassedOver()
    clients = set(range(count))
    served: list[int] = []
    for _ in range(3 * count):
        ready = [(fd, 1) for fd in range(count)]
        if passed:
            ready = passed.come_first(ready, clients)
        served += [fd for fd, _ in ready[:at_once]]
        passed.note(ready, min(at_once, count), are_all=True)
        waits = {fd: (served[::-1].index(fd) if fd in served else len(served)) for fd in clients}
        assert max(waits.values()) <= 2 * count + at_once
