"""Positions across ledgers, against a plain list of all entries."""

from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.core.ledger.log.chain import NOWHERE, START, Chain, Position, Segment
from magnetar.core.ledger.log.remaining_entries import RemainingEntries


def chain_of(entries: list[int]) -> Chain:
    """Ledgers 2, 4, 6, ... with so many entries each, all closed but the last."""
    chain = Chain()
    for i, count in enumerate(entries, 1):
        chain.segments.append(Segment(2 * i, 0, count, closed_ms=1))
        if count:
            chain.confirmed = (2 * i, count - 1)
    return chain


def sparse(ids: list[set[int]], start: Position) -> Chain:
    """The same, with what compaction left; the last ledger is whole. It begins at `start`."""
    chain = chain_of([max(left) + 1 for left in ids])
    for segment, left in zip(chain.segments[:-1], ids, strict=False):
        segment.remaining = RemainingEntries(100, 0, sorted(left))
    chain.start = start
    return chain


def trimmed(entries: list[int], gone: int, start: Position) -> Chain:
    """As many ledgers at the front are gone, maybe all; the log had begun at `start` before."""
    chain = chain_of(entries)
    del chain.segments[:gone]
    chain.start = start
    return chain


def all_of(chain: Chain) -> list[Position]:
    """Every entry that is there."""
    known = [
        (segment.ledger_id, entry_id)
        for segment in chain.segments
        for entry_id in segment.ids
        if entry_id <= chain.last_entry_of(segment)
    ]
    return [position for position in known if position >= chain.start]


POSITIONS = st.tuples(st.integers(-1, 12), st.integers(-1, 6))
LEFT = st.sets(st.integers(0, 5), min_size=1)
CHAINS = st.one_of(
    st.lists(st.integers(0, 4), max_size=5).map(chain_of),
    st.builds(sparse, st.lists(LEFT, min_size=1, max_size=5), st.just(START)),
    st.builds(sparse, st.lists(LEFT, min_size=1, max_size=5), POSITIONS),
    st.builds(trimmed, st.lists(st.integers(0, 4), max_size=5), st.integers(0, 5), POSITIONS),
)


@given(CHAINS, POSITIONS)
@example(chain_of([0, 1]), (2, -1))
@example(chain_of([0]), (2, -1))
@example(trimmed([3], 1, (2, 1)), START)
@example(trimmed([3, 0], 1, (2, 1)), START)
def test_normal_is_the_next_entry_there_is_or_the_one_to_come(
    chain: Chain, expected: Position
) -> None:
    behind = [known for known in all_of(chain) if known >= expected]
    if behind:
        assert chain.normal(expected) == behind[0]
        assert chain.has(chain.normal(expected))
    else:
        ledger_id, entry_id = chain.confirmed
        assert chain.normal(expected) == (ledger_id, entry_id + 1)
        assert not chain.has(chain.normal(expected))


@given(CHAINS)
def test_after_walks_over_every_entry_once(chain: Chain) -> None:
    walked = []
    position = chain.after(START)
    while chain.has(position):
        walked.append(position)
        position = chain.after(position)
    assert walked == all_of(chain)
    assert chain.first == (walked[0] if walked else (chain.confirmed[0], chain.confirmed[1] + 1))
    assert chain.entries == len(walked)


@given(CHAINS, POSITIONS, POSITIONS)
@example(sparse([{0}, {0}], (4, -1)), (0, 0), (4, 0))
def test_entries_between_counts_what_lies_there(
    chain: Chain, low: Position, high: Position
) -> None:
    known = all_of(chain)
    # an end that is asked about is one that exists, or lies before everything
    high = max((p for p in known if p <= high), default=START)
    low = max((p for p in known if p <= low), default=START)
    assert chain.entries_between(low, high) == sum(1 for p in known if low < p <= high)


def test_a_position_whose_ledger_was_trimmed() -> None:
    chain = chain_of([3, 3, 2])
    del chain.segments[:2]
    assert chain.normal((2, 1)) == (6, 0)
    assert chain.first == (6, 0)
    assert chain.entries_between((2, 1), chain.confirmed) == 2
    del chain.segments[:]
    assert chain.normal((2, 1)) == (6, 2), "the next one that is written"
    assert not chain.has((6, 2))


def test_what_is_open_ends_where_it_is_confirmed() -> None:
    chain = chain_of([3])
    chain.segments.append(Segment(9, 3))
    assert chain.last_entry_of(chain.segments[-1]) == -1
    assert chain.after((2, 2)) == (2, 3), "nobody knows yet that the next one comes in ledger 9"
    chain.segments[-1].entries, chain.confirmed = 1, (9, 0)
    assert chain.normal((2, 3)) == (9, 0)


@given(CHAINS, POSITIONS)
def test_entries_from_is_how_many_follow_each_other(chain: Chain, expected: Position) -> None:
    known = set(all_of(chain))
    if expected in known:
        count = chain.entries_from(expected)
        run = [(expected[0], expected[1] + place) for place in range(count)]
        assert known.issuperset(run)
        assert (expected[0], expected[1] + count) not in known
    assert chain.entries_from(expected) >= 1


def test_where_it_begins_in_messages() -> None:
    chain = Chain()
    assert chain.first_index(7) == 7
    chain.segments = [Segment(1, 3), Segment(2, 3, 2)]
    assert chain.first_index(7) == 3
    chain.begins_at = 0
    assert chain.first_index(7) == 0
    chain.begins_at = NOWHERE
    assert chain.first_index(7) == 3


def test_bytes_behind_a_position() -> None:
    chain = chain_of([4, 2])
    for segment in chain.segments:
        segment.size = 100
    chain.segments[-1].closed_ms = 0
    assert chain.bytes_after(START, 60) == 160
    assert chain.bytes_after((2, 1), 60) == 110
    assert chain.bytes_after((4, 0), 60) == 30
    chain.start = (2, 3)
    assert chain.bytes_after(START, 60) == 85
