"""What waits in all WebSockets has one limit, and who holds the most gives way."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar.websocket.held_entries import HeldEntries


class Holder:
    def __init__(self) -> None:
        self.size = 0
        self.closed = False

    def crowded_out(self) -> None:
        self.size, self.closed = 0, True


def test_who_holds_the_most_gives_way() -> None:
    held = HeldEntries(100)
    greedy, modest, late = Holder(), Holder(), Holder()
    held.count(greedy, 60)
    held.count(modest, 30)
    assert held.used == 90
    held.count(late, 40)
    assert (greedy.closed, modest.closed, late.closed) == (True, False, False)
    assert held.used == 70
    held.count(late, 90)
    assert late.closed
    assert held.used == 30
    held.count(modest, 0)
    held.count(greedy, 0)  # its connection is closed by now
    assert held.used == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200))))
def test_the_sum_is_that_of_all_and_within_the_limit(counts: list[tuple[int, int]]) -> None:
    held, holders = HeldEntries(300), [Holder() for _ in range(10)]
    for number, size in counts:
        holders[number].size = size
        held.count(holders[number], size)
        assert held.used == sum(each.size for each in holders) <= 300
