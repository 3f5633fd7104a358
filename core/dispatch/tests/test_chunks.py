from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.dispatch import chunks
from magnetar.core.dispatch.chunks import ChunkedEntry, ChunkOwners, Deal


@dataclass
class Taker:
    name: str
    permits: int
    priority: int = 0


def message(uuid: str, *places: int) -> dict[int, ChunkedEntry]:
    return {
        place: ChunkedEntry(uuid, first=place == places[0], last=place == places[-1])
        for place in places
    }


def shown(deal: Deal[Taker]) -> list[tuple[str, int, int]]:
    return [(share.consumer.name, share.start, share.count) for share in deal.shares]


def test_chunks_stay_together_beyond_permits() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    a, b = Taker("a", 1), Taker("b", 50)
    deal = owners.choose(5, None, [a, b], 0, message("u", 0, 2, 4))
    assert shown(deal) == [("a", 0, 1), ("b", 1, 1), ("a", 2, 1), ("b", 3, 1), ("a", 4, 1)]
    assert (deal.seen, deal.orphans, len(owners)) == (5, [], 0)


def test_chunks_stay_together_from_call_to_call() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    a, b = Taker("a", 50), Taker("b", 50)
    owners.choose(1, None, [a, b], 1, {0: ChunkedEntry("u", True, False)})
    for _ in range(3):
        assert shown(owners.choose(1, None, [a], 0, {0: ChunkedEntry("u", False, False)})) == [
            ("b", 0, 1)
        ]
    assert shown(owners.choose(1, None, [a, b], 0, {0: ChunkedEntry("u", False, True)})) == [
        ("b", 0, 1)
    ]
    assert len(owners) == 0


def test_an_orphan_is_named_and_passed_over() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    deal = owners.choose(3, None, [Taker("a", 9)], 0, {1: ChunkedEntry("u", False, False)})
    assert (shown(deal), deal.orphans, deal.seen) == ([("a", 0, 1), ("a", 2, 1)], [1], 3)


def test_a_first_chunk_waits_for_somebody() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    deal = owners.choose(3, [1, 1, 1], [Taker("a", 1)], 0, message("u", 1, 2))
    assert (shown(deal), deal.orphans, deal.seen) == ([("a", 0, 1)], [], 1)


def test_who_leaves_owns_nothing() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    a, b = Taker("a", 50), Taker("b", 50)
    owners.choose(1, None, [a], 0, {0: ChunkedEntry("u", True, False)})
    owners.left(a)
    again = owners.choose(2, None, [b], 0, message("u", 0, 1))
    assert shown(again) == [("b", 0, 1), ("b", 1, 1)]


def test_what_is_never_finished_is_forgotten() -> None:
    owners: ChunkOwners[Taker] = ChunkOwners()
    a = Taker("a", 10**9)
    for i in range(chunks.MESSAGES_OPEN_MAX + 5):
        owners.choose(1, None, [a], 0, {0: ChunkedEntry(str(i), True, False)})
    assert len(owners) == chunks.MESSAGES_OPEN_MAX


@given(
    st.dictionaries(st.integers(0, 59), st.sampled_from("uvw"), max_size=12),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_every_entry_is_covered_once(places: dict[int, str], permits: list[int]) -> None:
    parts: dict[int, ChunkedEntry] = {}
    for uuid in "uvw":
        mine = sorted(place for place, owner in places.items() if owner == uuid)
        parts.update(message(uuid, *mine))
    takers = [Taker(str(i), n) for i, n in enumerate(permits)]
    deal = ChunkOwners[Taker]().choose(60, None, takers, 0, parts)
    covered = sorted(
        [*deal.orphans, *(at for s in deal.shares for at in range(s.start, s.start + s.count))]
    )
    assert covered == list(range(deal.seen))
    owner = {at: s.consumer for s in deal.shares for at in range(s.start, s.start + s.count)}
    for uuid in "uvw":
        given_to = {
            id(owner[at]) for at, chunk in parts.items() if chunk.uuid == uuid and at in owner
        }
        assert len(given_to) <= 1
