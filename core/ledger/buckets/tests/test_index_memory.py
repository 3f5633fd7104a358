"""Who lets go of blocks when there are too many."""

from __future__ import annotations

from magnetar.core.ledger.buckets.index_memory import IndexMemory


class Holder:
    def __init__(self) -> None:
        self.gone: list[int] = []

    def let_go(self, what: int) -> None:
        self.gone.append(what)


def test_what_was_not_used_for_the_longest_goes_first() -> None:
    memory, one, other = IndexMemory(10), Holder(), Holder()
    memory.holds(one, -1, 3)
    memory.holds(one, 7, 3)
    memory.holds(other, 7, 3)
    memory.holds(one, -1, 4)
    assert (memory.blocks, one.gone, other.gone) == (10, [], [])
    memory.used(one, 7)
    memory.used(one, 8)
    memory.holds(other, 8, 2)
    assert (memory.blocks, one.gone, other.gone) == (9, [], [7])
    memory.holds(one, 7, 0)
    memory.holds(other, 8, 8)
    assert (memory.blocks, one.gone, other.gone) == (8, [-1], [7])


def test_one_that_is_too_large_alone_stays() -> None:
    memory, one, other = IndexMemory(10), Holder(), Holder()
    memory.holds(one, 1, 5)
    memory.holds(other, 2, 50)
    assert (memory.blocks, one.gone, other.gone) == (50, [1], [])
    memory.holds(other, 2, 0)
    assert memory.blocks == 0
