"""Shares of what is left, and who is relieved when there is more."""

import pytest

from magnetar.core.link.memory.outbound import PART_OF_PROVEN, SHARE_BYTES_MIN, OutboundMemory

MIB = 1024 * 1024


class Somebody:
    def __init__(self, *, reads: bool = False) -> None:
        self.reads = reads
        self.relieved_times = 0

    def relieved(self) -> None:
        self.relieved_times += 1


@pytest.fixture
def outgoing() -> OutboundMemory:
    return OutboundMemory(64 * MIB, MIB)


def test_each_further_answer_is_smaller_until_there_is_none(outgoing: OutboundMemory) -> None:
    shares = []
    while share := outgoing.share(reads=False):
        shares.append(share)
        outgoing.add(share)
    assert shares == sorted(shares, reverse=True)
    assert min(shares) >= SHARE_BYTES_MIN
    assert len(shares) > 10
    assert outgoing.used <= 64 * MIB - 64 * MIB // PART_OF_PROVEN


def test_who_reads_has_some_when_others_have_none(outgoing: OutboundMemory) -> None:
    while share := outgoing.share(reads=False):
        outgoing.add(share)
    assert outgoing.share(reads=True) >= 4 * MIB


def test_as_less_is_left_outboxes_may_hold_less(outgoing: OutboundMemory) -> None:
    assert outgoing.high == MIB
    outgoing.add(40 * MIB)
    assert outgoing.high == MIB
    outgoing.add(4 * MIB)
    assert outgoing.high == MIB // 2
    outgoing.add(4 * MIB)
    assert outgoing.high == -1, "nobody packs anything, also who has nothing waiting"
    outgoing.remove(20 * MIB)
    assert outgoing.high == MIB


def test_many_that_pack_as_they_may_stay_within_the_limit(outgoing: OutboundMemory) -> None:
    packed = [0] * 10_000
    for place in range(len(packed)):
        while packed[place] <= outgoing.high:
            packed[place] += 16 * 1024
            outgoing.add(16 * 1024)
    assert outgoing.used <= 48 * MIB + 16 * 1024, "the rest is for those that read"


def test_who_waits_is_told_in_order_as_there_is_room(outgoing: OutboundMemory) -> None:
    everybody = [Somebody() for _ in range(5)]
    outgoing.add(64 * MIB)
    for one in everybody:
        outgoing.wait(one)
    assert outgoing.short
    assert not outgoing.may_relieve
    outgoing.remove(16 * MIB + 2 * SHARE_BYTES_MIN)
    assert outgoing.may_relieve
    outgoing.relieve()
    assert [one.relieved_times for one in everybody] == [1, 1, 0, 0, 0]
    outgoing.forget(everybody[2])
    outgoing.remove(10 * MIB)
    outgoing.relieve()
    assert [one.relieved_times for one in everybody] == [1, 1, 0, 1, 1]
    assert not outgoing.short


def test_no_more_are_told_than_find_a_share(outgoing: OutboundMemory) -> None:
    everybody = [Somebody() for _ in range(50)]
    for one in everybody:
        outgoing.wait(one)
    outgoing.relieve()
    relieved = [one for one in everybody if one.relieved_times]
    assert 10 < len(relieved) < 20
    for _ in relieved:
        share = outgoing.share(reads=False)
        assert share, "who was relieved finds nothing"
        outgoing.add(share)


def test_those_that_read_go_first_and_need_less(outgoing: OutboundMemory) -> None:
    outgoing.add(64 * MIB)
    others, reading = Somebody(), Somebody(reads=True)
    outgoing.wait(others)
    outgoing.wait(reading)
    outgoing.remove(2 * SHARE_BYTES_MIN)
    assert outgoing.may_relieve
    outgoing.relieve()
    assert (others.relieved_times, reading.relieved_times) == (0, 1)
    assert not outgoing.may_relieve
    others.reads = True
    outgoing.look_again()
    outgoing.relieve()
    assert others.relieved_times == 1
    assert not outgoing.short


def test_a_small_limit_has_shares_too() -> None:
    outgoing = OutboundMemory(MIB, MIB)
    assert 0 < outgoing.share(reads=False) <= MIB // 4
