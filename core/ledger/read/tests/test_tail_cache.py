"""One budget for all tails, oldest first."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.ledger.read.tail_cache import JOIN_ENTRIES_MAX, Slice, TailCache, TopicTail


def run(ledger_id: int, first: int, *payloads: bytes, counts: list[int] | None = None) -> Slice:
    return Slice(ledger_id, first, list(payloads), counts, [b"h"] * len(payloads))


def found(tail: TopicTail, ledger_id: int, entry_id: int) -> bytes | None:
    at = tail.find(ledger_id, entry_id)
    return at[0].payloads[at[1]] if at is not None else None


def test_small_neighbours_are_joined_batches_are_not() -> None:
    tail = TopicTail(TailCache(1000))
    tail.add(run(1, 0, b"a"))
    tail.add(run(1, 1, b"b", b"c"))
    whole = tail.find(1, 0)
    assert whole is not None
    assert whole[0].payloads == [b"a", b"b", b"c"]
    assert whole[0].stored() == [b"ha", b"hb", b"hc"]
    tail.add(run(1, 3, b"d", counts=[9]))
    last = tail.find(1, 3)
    assert last is not None
    assert last[0].messages() == 9
    assert found(tail, 1, 4) is None
    assert found(tail, 2, 0) is None


def test_a_slice_on_its_way_does_not_grow() -> None:
    tail = TopicTail(TailCache(1000))
    tail.add(run(1, 0, b"a", b"b"))
    at = tail.find(1, 0)
    assert at is not None
    part = at[0].part(1, 2)
    tail.add(run(1, 2, b"c"))
    assert part.payloads == [b"b"]


def test_a_run_is_joined_up_to_a_size() -> None:
    cache = TailCache(1 << 20)
    tail = TopicTail(cache)
    for entry_id in range(JOIN_ENTRIES_MAX + 1):
        tail.add(run(1, entry_id, b"x"))
    last = tail.find(1, JOIN_ENTRIES_MAX)
    assert last is not None
    assert (last[0].first_entry, last[1]) == (JOIN_ENTRIES_MAX, 0)


def test_the_oldest_of_all_topics_goes_first() -> None:
    cache = TailCache(25)
    a, b = TopicTail(cache), TopicTail(cache)
    a.add(run(1, 0, bytes(10), counts=[1]))
    b.add(run(2, 0, bytes(10), counts=[1]))
    a.add(run(1, 1, bytes(10), counts=[1]))
    assert found(a, 1, 0) is None
    assert found(b, 2, 0) is not None
    assert found(a, 1, 1) is not None
    a.clear()
    assert cache.bytes == 10
    b.add(run(2, 1, bytes(10), counts=[1]))
    assert (found(b, 2, 0), cache.bytes) == (bytes(10), 20)


def steps_of(tail: TopicTail) -> int:
    """How many calls, and turns of generators, clearing it takes."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        tail.clear()
    finally:
        sys.setprofile(before)
    return steps


def test_unloading_a_topic_costs_what_it_holds() -> None:
    """A stop with 10,000 topics took all its time for looking at the runs of the others."""
    cache = TailCache(1 << 20)
    tails = [TopicTail(cache) for _ in range(1000)]
    alone = TopicTail(TailCache(1 << 20))
    for tail in (*tails, alone):
        tail.add(run(1, 0, b"x", counts=[1]))
    assert steps_of(tails[500]) == steps_of(alone)
    assert steps_of(tails[500]) <= steps_of(TopicTail(cache)), "and nothing when it holds nothing"
    assert cache.bytes == 999


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.booleans()), max_size=80))
def test_the_budget_is_kept_and_what_is_found_is_right(
    adds: list[tuple[int, int, bool]],
) -> None:
    cache = TailCache(100)
    tails = [TopicTail(cache) for _ in range(3)]
    nexts = [0, 0, 0]
    for which, size, batch in adds:
        payload = bytes([nexts[which] % 256]) * size
        tails[which].add(run(which, nexts[which], payload, counts=[2] if batch else None))
        nexts[which] += 1
        assert cache.bytes <= max(cache.bytes_max, size)
    for which, tail in enumerate(tails):
        for entry_id in range(nexts[which]):
            assert set(found(tail, which, entry_id) or b"") <= {entry_id % 256}
    for tail in tails:
        tail.clear()
    assert cache.bytes == 0
