"""When it is worth it, and what may be touched."""

from magnetar.core.compaction.plan import groups, plan
from magnetar.core.ledger.log.chain import Chain, Segment
from magnetar.core.policy.values import Compaction

NOW = 1_000_000


def chain_of(*sizes: int) -> Chain:
    """Ledgers of ten messages, in ten entries each, closed one after the other; one is open."""
    chain = Chain()
    for place, size in enumerate(sizes):
        closed_ms = NOW - 1000 * (len(sizes) - place)
        chain.segments.append(Segment(place, place * 10, 10, size, closed_ms))
    chain.segments.append(Segment(len(sizes), len(sizes) * 10, 1))
    chain.confirmed = (len(sizes), 0)
    return chain


def ids(found: object) -> list[int]:
    return [one.ledger_id for one in found]  # type: ignore[attr-defined]


def test_all_that_has_ended() -> None:
    found = plan(chain_of(1, 1, 1), 0, Compaction(), NOW)
    assert found is not None
    assert (ids(found.segments), ids(found.dirty), found.end) == ([0, 1, 2], [0, 1, 2], 30)


def test_the_last_ledger_is_left_alone() -> None:
    chain = chain_of(1, 1)
    chain.segments.pop()
    chain.confirmed = (1, 9)
    found = plan(chain, 0, Compaction(), NOW)
    assert found is not None
    assert ids(found.segments) == [0]
    chain.segments.append(Segment(2, 20))  # it has been begun, and nothing is in it yet
    assert plan(chain, 0, Compaction(), NOW) == found
    assert plan(Chain(), 0, Compaction(), NOW) is None


def test_enough_has_to_be_new() -> None:
    chain = chain_of(50, 25, 25)
    for clean_to, ratio, worth in ((10, 0.5, True), (10, 0.6, False), (20, 0.3, False)):
        found = plan(chain, clean_to, Compaction(dirty_ratio=ratio), NOW)
        assert (found is not None) is worth
    assert plan(chain, 30, Compaction(dirty_ratio=0), NOW) is None
    found = plan(chain, 15, Compaction(dirty_ratio=0), NOW)
    assert found is not None
    assert ids(found.dirty) == [1, 2], "of the first of them a part is clean"


def test_what_is_young_stays() -> None:
    found = plan(chain_of(1, 1, 1), 0, Compaction(min_lag_ms=1500), NOW)
    assert found is not None
    assert (ids(found.segments), found.end) == ([0, 1], 20)
    assert plan(chain_of(1, 1, 1), 0, Compaction(min_lag_ms=5000), NOW) is None


def test_what_is_old_does_not_wait_for_more() -> None:
    chain, expected = chain_of(50, 1, 1), Compaction(dirty_ratio=1, max_lag_ms=3500)
    for place, segment in enumerate(chain.segments):
        segment.begun_ms = NOW - 4000 + place * 1000
    assert plan(chain, 10, expected, NOW) is None, "what is so old has been compacted"
    assert plan(chain, 10, expected, NOW + 500) is None
    found = plan(chain, 10, expected, NOW + 501)
    assert found is not None
    assert (ids(found.segments), ids(found.dirty)) == ([0, 1, 2], [1, 2])
    assert plan(chain, 10, Compaction(dirty_ratio=1), NOW + 501) is None
    young = Compaction(dirty_ratio=1, min_lag_ms=3500, max_lag_ms=3500)
    assert plan(chain, 10, young, NOW + 1499) is None
    found = plan(chain, 10, young, NOW + 1500)
    assert found is not None
    assert ids(found.dirty) == [1], "the other one is too young"
    assert plan(chain, 30, expected, NOW + 10**6) is None, "nothing is new"


def test_of_others_ledgers_the_end_is_known() -> None:
    chain, expected = chain_of(50, 1), Compaction(dirty_ratio=1, max_lag_ms=3500)
    assert plan(chain, 10, expected, NOW + 2500) is None
    assert plan(chain, 10, expected, NOW + 2501) is not None


def test_groups_are_not_too_large() -> None:
    segments = chain_of(4, 4, 4, 9, 1, 30, 1).segments[:-1]
    assert [ids(group) for group in groups(segments, 10)] == [[0, 1], [2], [3, 4], [5], [6]]
    assert list(groups([], 10)) == []
