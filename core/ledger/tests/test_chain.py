"""Positions across ledgers, against a plain list of all entries."""

from hypothesis import given
from hypothesis import strategies as st

from core.ledger.chain import START, Chain, Position, Segment


def chain_of(entries: list[int]) -> Chain:
    """Ledgers 2, 4, 6, ... with so many entries each, all closed but the last."""
    chain = Chain()
    for i, count in enumerate(entries, 1):
        chain.segments.append(Segment(2 * i, 0, count, closed_ms=1))
        if count:
            chain.confirmed = (2 * i, count - 1)
    return chain


def all_of(chain: Chain) -> list[Position]:
    return [(s.ledger_id, e) for s in chain.segments for e in range(chain.last_entry_of(s) + 1)]


CHAINS = st.lists(st.integers(0, 4), max_size=5).map(chain_of)
POSITIONS = st.tuples(st.integers(-1, 12), st.integers(-1, 6))


@given(CHAINS, POSITIONS)
def test_normal_is_the_next_entry_there_is_or_the_one_to_come(
    chain: Chain, wanted: Position
) -> None:
    behind = [known for known in all_of(chain) if known >= wanted]
    if behind:
        assert chain.normal(wanted) == behind[0]
        assert chain.has(chain.normal(wanted))
    else:
        ledger_id, entry_id = chain.confirmed
        assert chain.normal(wanted) == (ledger_id, entry_id + 1)
        assert not chain.has(chain.normal(wanted))


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
def test_entries_from_is_what_its_ledger_still_has(chain: Chain, wanted: Position) -> None:
    behind = [known for known in all_of(chain) if known[0] == wanted[0] and known >= wanted]
    if wanted in behind:
        assert chain.entries_from(wanted) == len(behind)
    assert chain.entries_from(wanted) >= 1
