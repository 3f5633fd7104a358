"""A place in the log by time, and by what clients say."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.ledger.log.chain import START, Chain, Segment
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.entries import entry
from magnetar.core.topic.seek import LATEST_LEDGER, find_by_time, mark_before


def chain_of(*entries: int) -> Chain:
    chain = Chain()
    for i, count in enumerate(entries, 1):
        chain.segments.append(Segment(2 * i, 0, count, closed_ms=1))
        chain.confirmed = (2 * i, count - 1)
    return chain


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(-1, 10), st.integers(-1, 5))
def test_what_is_wanted_is_read_next(entries: list[int], ledger_id: int, entry_id: int) -> None:
    chain = chain_of(*entries)
    mark = mark_before(chain, (ledger_id, entry_id))
    expected = chain.first if -1 in (ledger_id, entry_id) else chain.normal((ledger_id, entry_id))
    assert chain.after(mark) == expected


def test_the_ends() -> None:
    chain = chain_of(3, 2)
    assert mark_before(chain, (LATEST_LEDGER, -1)) == (4, 1)
    assert mark_before(chain, (LATEST_LEDGER, (1 << 48) - 1)) == (4, 1), "C++ cuts the entry"
    assert mark_before(chain, (-1, -1)) == START


async def test_by_time_across_ledgers(desk: Bench) -> None:
    topic = await desk.topic()
    places = []
    for start in (0, 10, 20):
        places += await desk.published(
            topic, *[entry(published_ms=100 + (start + i) * 2) for i in range(10)]
        )
    for number, place in enumerate(places):
        assert await find_by_time(topic.ledger, 100 + number * 2) == place
        assert await find_by_time(topic.ledger, 99 + number * 2) == place
    assert await find_by_time(topic.ledger, 0) == places[0]
    last = topic.ledger.chain.confirmed
    assert await find_by_time(topic.ledger, 10_000) == (last[0], last[1] + 1)
    empty = await desk.topic("empty")
    assert await find_by_time(empty.ledger, 0) == (-1, 0)
