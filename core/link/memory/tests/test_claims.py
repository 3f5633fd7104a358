"""Memory that is claimed: what each class may take, and who is served first."""

import pytest

from magnetar.core.link.memory.claims import CLAIMED_PARTS, PARTS, Claims, ReplyClass
from magnetar.core.link.memory.outbound import OutboundMemory

MIB = 1024 * 1024
LIMIT = 64 * MIB
LARGEST = 5 * MIB


class Holding:
    holds = True


class Claiming:
    def __init__(self) -> None:
        self.times = 0

    def granted(self) -> None:
        self.times += 1


@pytest.fixture
def memory() -> OutboundMemory:
    return OutboundMemory(LIMIT, MIB)


@pytest.fixture
def claims(memory: OutboundMemory) -> Claims:
    return memory.claims


def fill(claims: Claims, kind: ReplyClass, size: int) -> int:
    count = 0
    while claims.take(kind, size):
        count += 1
    return count


def test_each_class_leaves_the_next_one_room(memory: OutboundMemory, claims: Claims) -> None:
    for kind in ReplyClass:
        size = LARGEST if kind <= ReplyClass.RECOVERING else claims.small_bytes
        assert fill(claims, kind, size), f"{kind.name} finds nothing"
        assert memory.used <= LIMIT * kind // PARTS
    assert memory.used == LIMIT


def test_who_waits_is_granted_in_order_and_the_urgent_first(
    memory: OutboundMemory, claims: Claims
) -> None:
    fill(claims, ReplyClass.BRIEF, MIB)
    large, later, small = Claiming(), Claiming(), Claiming()
    claims.wait(large, ReplyClass.LARGE, LARGEST)
    claims.wait(later, ReplyClass.LARGE, 1)
    claims.wait(small, ReplyClass.SMALL, 1000)
    assert not memory.may_relieve
    claims.release(3 * MIB)
    assert memory.may_relieve
    memory.relieve()
    assert (large.times, later.times, small.times) == (0, 0, 1)
    claims.release(31 * MIB)
    assert not memory.may_relieve, "the later one waits for the one before it"
    claims.release(5 * MIB)
    memory.relieve()
    assert (large.times, later.times) == (1, 1)
    assert memory.used == 25 * MIB + 1000 + LARGEST + 1
    assert not memory.short


def test_who_comes_anew_waits_behind_others_of_its_class(
    memory: OutboundMemory, claims: Claims
) -> None:
    fill(claims, ReplyClass.LARGE, MIB)
    waiting = Claiming()
    claims.wait(waiting, ReplyClass.LARGE, LARGEST)
    claims.release(MIB)
    assert not claims.take(ReplyClass.LARGE, MIB)
    assert not claims.left(ReplyClass.LARGE)
    assert not claims.is_plentiful(1)
    assert claims.take(ReplyClass.SMALL, MIB)
    claims.forget(waiting)
    claims.release(MIB)
    assert claims.take(ReplyClass.LARGE, MIB)
    assert waiting.times == 0


def test_who_comes_last_has_its_turn_beside_hundreds_who_do_not_receive(
    memory: OutboundMemory, claims: Claims
) -> None:
    held = fill(claims, ReplyClass.LARGE, LARGEST)
    flood = [Claiming() for _ in range(300)]
    for each in flood:
        claims.wait(each, ReplyClass.LARGE, LARGEST)
    newcomer = Claiming()
    claims.wait(newcomer, ReplyClass.LARGE, LARGEST)
    for _ in range(held):  # one after the other is closed
        claims.release(LARGEST)
        memory.relieve()
    assert newcomer.times == 1
    assert [each.times for each in flood[:2]] == [1, 1], "those that came first have theirs, too"


def test_those_who_came_first_are_granted_however_many_come_after_them(
    memory: OutboundMemory, claims: Claims
) -> None:
    fill(claims, ReplyClass.LARGE, LARGEST)
    earlier = [Claiming() for _ in range(10)]
    for each in earlier:
        claims.wait(each, ReplyClass.LARGE, LARGEST)
    for _ in range(2 * len(earlier)):
        claims.wait(Claiming(), ReplyClass.LARGE, LARGEST)
        claims.release(LARGEST)
        memory.relieve()
    assert [each.times for each in earlier] == [1] * len(earlier)


@pytest.mark.parametrize("kind", [ReplyClass.PREFERRED, ReplyClass.URGENT])
def test_who_only_says_that_it_is_urgent_leaves_something_to_others(
    memory: OutboundMemory, claims: Claims, kind: ReplyClass
) -> None:
    holders = []
    while claims.take(kind, LARGEST):
        holders.append(Holding())
        claims.hold(holders[-1], kind, LARGEST)
    assert 0 < memory.used <= LIMIT * CLAIMED_PARTS // PARTS
    assert claims.take(ReplyClass.LARGE, LARGEST)
    assert fill(claims, ReplyClass.RECOVERING, LARGEST) > 2
    waiting = Claiming()
    claims.wait(waiting, kind, LARGEST)
    claims.release(memory.used - len(holders) * LARGEST)
    assert not memory.may_relieve
    holders[0].holds = False
    claims.release(LARGEST)
    memory.relieve()
    assert waiting.times == 1


def test_peers_that_hold_memory_are_looked_at_while_a_claim_waits(
    memory: OutboundMemory, claims: Claims
) -> None:
    waiting = Claiming()
    claims.wait(waiting, ReplyClass.LARGE, 1)
    assert memory.short
    claims.forget(waiting)
    claims.forget(waiting)
    assert not memory.short


def test_a_claim_that_is_larger_than_its_part_has_it_alone(
    memory: OutboundMemory, claims: Claims
) -> None:
    assert claims.take(ReplyClass.LARGE, LIMIT)
    assert not claims.take(ReplyClass.LARGE, 1)
    claims.release(LIMIT)
    assert memory.used == 0
