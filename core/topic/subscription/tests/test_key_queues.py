"""What waits by hash: who may go is found at once, in order, whatever happens in between."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.dispatch.key_shared import KeyShared, Mode
from magnetar.core.dispatch.selectors import Division
from magnetar.core.topic.subscription.key_queues import KeyQueues

Position = tuple[int, int]


class Someone(NamedTuple):
    """A consumer, as far as keys care."""

    name: str
    permits: int = 1
    ready: bool = True


A, B = Someone("a"), Someone("b")


def held(
    out_of_order: bool = False,
) -> tuple[KeyQueues[Someone], KeyShared[Someone], dict[Position, int]]:
    mode = Mode(out_of_order=out_of_order)
    keys: KeyShared[Someone] = KeyShared(mode, Division(ring=False))
    keys.attach(A, mode)
    hashes: dict[Position, int] = {}
    return KeyQueues(keys, hashes), keys, hashes


def wait(waiting: KeyQueues[Someone], hashes: dict[Position, int], **of: int) -> None:
    """`e3=7`: entry 3, of hash 7, waits."""
    for name, hash_ in of.items():
        hashes[(0, int(name[1:]))] = hash_
        waiting.add((0, int(name[1:])))


def test_consecutive_entries_go_in_one_run() -> None:
    waiting, _keys, hashes = held()
    wait(waiting, hashes, e1=7, e2=8, e3=7, e5=8)
    assert waiting.head(A) == (0, 1)
    assert waiting.take_run(A, 2) == [7, 8]
    assert waiting.take_run(A, 9) == [7]
    assert waiting.take_run(A, 9) == [8]
    assert (waiting.head(A), len(waiting), list(waiting.hashes_waiting)) == (None, 0, [])


def test_a_hash_that_another_holds_is_put_aside_until_it_is_freed() -> None:
    waiting, keys, hashes = held()
    keys.sent(A, 7)
    keys.attach(B, keys.mode)  # takes the lower half
    waiting.reform()
    wait(waiting, hashes, e1=7, e2=8)
    assert waiting.take_run(B, 9) == [8], "7 is still out with the other"
    assert waiting.head(B) is None
    assert keys.returned(A, 7)
    waiting.freed(7)
    assert waiting.head(B) == (0, 1)
    waiting.freed(7)  # nothing more to free
    assert waiting.take_run(B, 9) == [7]


def test_without_order_nobody_waits_for_another() -> None:
    waiting, keys, hashes = held(out_of_order=True)
    keys.sent(A, 7)
    keys.attach(B, keys.mode)
    waiting.reform()
    wait(waiting, hashes, e1=7)
    assert waiting.head(B) == (0, 1)


def test_what_comes_back_goes_before_what_waited() -> None:
    waiting, _keys, hashes = held()
    wait(waiting, hashes, e5=7, e6=7)
    wait(waiting, hashes, e2=7)
    assert waiting.head(A) == (0, 2)
    waiting.discard((0, 2))
    assert waiting.head(A) == (0, 5)


def test_an_unknown_hash_waits_to_be_read() -> None:
    waiting, _keys, hashes = held()
    waiting.add((0, 1))
    assert ((0, 1) in waiting, len(waiting), waiting.head(A)) == (True, 1, None)
    hashes[(0, 1)] = 7
    waiting.learned((0, 1))
    assert (waiting.head(A), len(waiting)) == ((0, 1), 1)
    waiting.add((0, 2))
    waiting.discard((0, 2))
    waiting.clear()
    assert (list(waiting), waiting.head(A)) == ([], None)


STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 30)),
    st.tuples(st.just("discard"), st.integers(0, 30)),
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("ack"), st.just(0)),
    st.tuples(st.just("come"), st.just(0)),
    st.tuples(st.just("go"), st.just(0)),
)


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=300)
def test_as_a_plain_search_would_find_it(steps: list[tuple[str, int]]) -> None:
    """Against a model that looks at everything, every time."""
    waiting, keys, hashes = held()
    model: dict[Position, int] = {}
    out: list[tuple[Position, Someone]] = []
    here = [A]
    for verb, number in steps:
        position = (0, number)
        if verb == "add" and position not in dict(out):
            model[position] = hashes[position] = 20_000 * (number % 3) + 1
            waiting.add(position)
        elif verb == "discard":
            model.pop(position, None)
            waiting.discard(position)
        elif verb == "ack" and out:
            done, owner = out.pop(0)
            if keys.returned(owner, hashes[done]):
                waiting.freed(hashes[done])
        elif verb == "come" and B not in here:
            keys.attach(B, keys.mode)
            here.append(B)
            waiting.reform()
        elif verb == "go" and B in here:
            out = [pair for pair in out if pair[1] is not B]
            keys.detach(B)
            here.remove(B)
            waiting.reform()
        for consumer in here:
            mine = [
                one
                for one, hash_ in sorted(model.items())
                if keys.owner(hash_) is consumer and keys.free(hash_, consumer)
            ]
            assert waiting.head(consumer) == (mine[0] if mine else None)
            if verb == "take" and mine:
                taken = waiting.take_run(consumer, number)
                run = [(0, mine[0][1] + at) for at in range(len(taken))]
                assert run == mine[: len(run)]
                for one, hash_ in zip(run, taken, strict=True):
                    assert model.pop(one) == hash_
                    keys.sent(consumer, hash_)
                    out.append((one, consumer))
        assert sorted(waiting) == sorted(model)
        assert set(waiting.hashes_waiting) == set(model.values())


def test_coming_and_going_does_not_fill_memory() -> None:
    waiting, _keys, hashes = held()
    wait(waiting, hashes, e0=7)
    for step in range(1, 5_000):
        hashes[(0, step % 50 + 1)] = 7
        waiting.add((0, step % 50 + 1))
        waiting.discard((0, step % 50 + 1))
        hashes[(1, step)] = step % 10 + 10
        waiting.add((1, step))
        waiting.discard((1, step))
    assert len(waiting._queues[7].places) < 200
    assert sum(map(len, waiting._lines.values())) < 200
    assert waiting.take_run(A, 9) == [7]
