"""Times in order, in little memory, and the latest given up first."""

import random
import sys

import pytest

from magnetar.core.topic.subscription.delayed import known_times
from magnetar.core.topic.subscription.delayed.known_times import KnownTimes
from magnetar.core.topic.subscription.delayed.position_set import PositionSet


def times_of(dues: list[int]) -> tuple[KnownTimes, PositionSet]:
    live = PositionSet()
    known = KnownTimes(live)
    for entry_id, due_ms in enumerate(dues):
        live.add((7, entry_id))
        known.add((7, entry_id), due_ms)
    return known, live


def taken(known: KnownTimes, live: PositionSet) -> list[tuple[int, int]]:
    """All that count, with their times, in the order in which they come."""
    found = []
    while (due_ms := known.soonest()) is not None:
        position = known.pop()
        assert position in live
        live.discard(position)
        found.append((due_ms, position[1]))
    return found


@pytest.mark.parametrize("run_max", [16, 64, 4096])
def test_the_soonest_comes_first(run_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the heap, from runs, and from what is left of them; without those that do not count."""
    monkeypatch.setattr(known_times, "RUN_TIMES_MAX", run_max)
    monkeypatch.setattr(known_times, "SHORT_RUN_TIMES", run_max // 8)
    pick = random.Random(run_max)
    dues = [pick.randrange(500) for _ in range(1_000)]
    known, live = times_of(dues)
    gone = set(pick.sample(range(1_000), 300))
    for entry_id in gone:
        live.discard((7, entry_id))
    found = taken(known, live)
    assert [due_ms for due_ms, _ in found] == sorted(due_ms for due_ms, _ in found)
    assert sorted(entry for _, entry in found) == sorted(set(range(1_000)) - gone)
    assert all(dues[entry] == due_ms for due_ms, entry in found)
    assert (len(known), known._heap, known._heads) == (0, [], [])


def test_the_latest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_times, "RUN_TIMES_MAX", 64)
    monkeypatch.setattr(known_times, "SHORT_RUN_TIMES", 8)
    dues = random.Random(1).sample(range(10_000), 1_000)
    known, live = times_of(dues)
    given_up: dict[int, int] = {}
    while len(known) > 400:
        before = len(known)
        portion = known.give_up()
        assert 0 < len(portion) == before - len(known)
        given_up |= {position[1]: due_ms for position, due_ms in portion}
    assert all(dues[entry] == due_ms for entry, due_ms in given_up.items())
    assert min(given_up.values()) > sorted(dues)[150], "400 are left"
    for entry_id in given_up:
        live.discard((7, entry_id))
    assert taken(known, live) == sorted(
        (due_ms, entry) for entry, due_ms in enumerate(dues) if entry not in given_up
    )


def test_all_may_be_given_up() -> None:
    known, live = times_of([5, 3, 4])
    known.give_up()
    while known.give_up():
        pass
    assert (len(known), known.soonest()) == (0, None)
    live.discard((7, 0))
    known.add((7, 0), 1)
    assert known.give_up() == [], "it does not count"
    assert len(known) == 0


def test_runs_that_are_left_behind_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time of each is far off."""
    monkeypatch.setattr(known_times, "RUN_TIMES_MAX", 64)
    monkeypatch.setattr(known_times, "SHORT_RUN_TIMES", 8)
    known, live = times_of([10_000 if at % 64 == 0 else at for at in range(1_280)])
    while (soonest := known.soonest()) is not None and soonest < 10_000:
        live.discard(known.pop())
    assert (len(known), len(live)) == (20, 20)
    assert len(known._heads) == 0


def test_times_that_do_not_count_are_dropped_a_few_at_a_time() -> None:
    """However many there are: nobody waits for that."""
    known, live = times_of(list(range(20_000)))
    live.discard_to((7, 18_999))
    assert known.soonest() == known_times.DROPPED_MAX
    assert len(known) == 20_000 - known_times.DROPPED_MAX
    assert known.pop() not in live
    while (soonest := known.soonest()) is not None and soonest < 19_000:
        known.pop()
    assert (soonest, len(known)) == (19_000, 1_000)


def test_coming_and_going_does_not_fill_memory() -> None:
    known, live = times_of([])
    for step in range(20_000):
        live.add((step, 5))
        known.add((step, 5), step)
        live.discard((step, 5))
    assert len(known) < known_times.RUN_TIMES_MAX
    assert not known._heads


def test_many_take_little_memory() -> None:
    known, _ = times_of([1_800_000_000_000 + entry for entry in range(50_000)])
    runs = sum(
        sys.getsizeof(numbers)
        for _, _, run in known._heads
        for numbers in (run.dues, run.ledgers, run.entries)
    )
    heap = sys.getsizeof(known._heap) + sum(map(sys.getsizeof, known._heap))
    assert (runs + heap) / 50_000 < 32
