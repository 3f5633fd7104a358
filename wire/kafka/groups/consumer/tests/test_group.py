"""A group of the newer protocol, from its members' side."""

from __future__ import annotations

from itertools import product

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.groups.classic.group_record import StoredConsumerGroup, decode, encode
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup, ConsumerState
from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, Timing, Topics
from magnetar.wire.kafka.groups.consumer.member import MemberState
from magnetar.wire.kafka.groups.memory_budget import GroupMemory

STABLE = MemberState.STABLE
A, B = b"a" * 16, b"b" * 16


def parts(topic: bytes, *numbers: int) -> frozenset[TopicIdPartition]:
    return frozenset((topic, number) for number in numbers)


ALL = parts(A, 0, 1, 2, 3)
THERE = Topics({"a": A, "b": B}, {A: 4, B: 2}, {"a|b": frozenset({"a", "b"})})


class Desk:
    """A group and a clock."""

    def __init__(self, size_max: int = 10, bytes_max: int = 1_000_000) -> None:
        self.memory = GroupMemory(bytes_max)
        self.now = 100.0
        timing = Timing(heartbeat_seconds=5.0, session_seconds=45.0)
        self.group = ConsumerGroup("g", size_max, timing, self.memory)
        self.look(THERE)

    def restarted(self) -> Desk:
        """The group as it is after a restart; nobody has looked yet."""
        desk, kept = Desk(), self.group.stored()
        assert kept is not None
        found = decode(encode(kept))
        assert isinstance(found, StoredConsumerGroup)
        desk.now = self.now
        desk.memory = GroupMemory(1_000_000)
        desk.group = ConsumerGroup("g", 10, Timing(5.0, 45.0), desk.memory)
        desk.group.resume(found, self.now)
        return desk

    def look(self, topics: Topics) -> None:
        self.group.set_topics(topics, self.now)

    def join(
        self, member: str, *names: str, instance: str | None = None, **more
    ) -> HeartbeatResult:
        expected = frozenset(names or ("a",))
        beat = Heartbeat(member, 0, instance, None, 60.0, expected, owned=frozenset(), **more)
        return self.group.heartbeat(beat, self.now)

    def beat(self, member: str, epoch: int, owned=None, instance=None, **more) -> HeartbeatResult:
        beat = Heartbeat(member, epoch, instance, owned=owned, **more)
        return self.group.heartbeat(beat, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.group.due <= self.now:
            self.group.tick(self.now)


def test_the_first_has_everything_at_once() -> None:
    desk = Desk()
    assert desk.group.state is ConsumerState.EMPTY
    results = desk.join("m")
    assert (results.error_code, results.epoch, results.assigned, results.again_seconds) == (
        0,
        1,
        ALL,
        5.0,
    )
    assert desk.group.state is ConsumerState.STABLE
    again = desk.beat("m", 1, ALL)
    assert (again.epoch, again.assigned) == (1, None), "nothing has changed"


def test_a_second_gets_its_share_when_the_first_has_let_go() -> None:
    desk = Desk()
    desk.join("m")
    waits = desk.join("n")
    assert (waits.epoch, waits.assigned) == (2, frozenset())
    assert desk.group.state is ConsumerState.RECONCILING
    results = desk.beat("m", 1)
    assert results.epoch == 1, "not before it has let go"
    assert results.assigned is not None
    assert len(results.assigned) == 2
    assert desk.beat("m", 1, ALL).assigned is None, "it has not let go yet"
    assert desk.beat("n", 2).assigned is None
    assert desk.beat("m", 1, results.assigned).epoch == 2
    assert desk.beat("n", 2).assigned == ALL - results.assigned
    assert desk.group.state is ConsumerState.STABLE


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (one, other, ConsumerState.STABLE if one is other is STABLE else ConsumerState.RECONCILING)
        for one, other in product(MemberState, repeat=2)
    ],
)
def test_its_state_follows_from_those_of_its_members(
    first: MemberState, second: MemberState, state: ConsumerState
) -> None:
    desk = Desk()
    desk.join("m")
    desk.join("n")
    for member, its in zip(desk.group.members.values(), (first, second), strict=True):
        member.state, member.epoch = its, desk.group.epoch
    assert desk.group.state is state
    desk.group.members["m"].epoch -= 1
    assert desk.group.state is ConsumerState.RECONCILING, "it has not heard of the last epoch"
    desk.group.die()
    assert desk.group.state is ConsumerState.DEAD


def test_who_leaves_lets_go() -> None:
    desk = Desk()
    desk.join("m")
    results = desk.beat("m", -1)
    assert (results.error_code, results.epoch, results.member_id) == (0, -1, "m")
    assert desk.group.state is ConsumerState.EMPTY
    assert desk.memory.used_bytes == 0
    assert desk.beat("m", 1).error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.join("n").assigned == ALL


def test_who_does_not_let_go_in_time_is_out() -> None:
    desk = Desk()
    desk.join("m")
    desk.join("n")
    for _ in range(6):
        desk.beat("m", 1, ALL)
        desk.beat("n", 2)
        desk.wait(10)
    assert desk.beat("m", 1, ALL).error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.beat("n", 2).assigned == ALL


def test_other_times_hold_from_the_next_heartbeat_on() -> None:
    desk = Desk()
    for member in "mn":
        desk.join(member)
    desk.group.timing = Timing(heartbeat_seconds=15.0, session_seconds=60.0)
    assert desk.beat("n", 2).again_seconds == 15.0
    desk.wait(46)
    assert set(desk.group.members) == {"n"}, "the other one has been told 45 s"
    desk.wait(13)
    assert desk.group.in_use
    desk.wait(2)
    assert desk.group.is_over


def test_silence() -> None:
    desk = Desk()
    desk.join("m")
    desk.wait(44)
    assert desk.group.in_use
    desk.wait(2)
    assert desk.group.is_over


def test_epochs() -> None:
    desk = Desk()
    desk.join("m")
    assert desk.beat("m", 2).error_code == errors.FENCED_MEMBER_EPOCH
    desk.join("n")
    keeps = desk.beat("m", 1).assigned
    desk.beat("m", 1, keeps)
    assert desk.beat("m", 1, keeps).epoch == 2, "it has missed the answer"
    assert desk.beat("m", 1).error_code == errors.FENCED_MEMBER_EPOCH, "what does it read?"
    assert desk.beat("m", 1, ALL).error_code == errors.FENCED_MEMBER_EPOCH, "too much"
    anew = desk.join("m")
    assert (anew.epoch, anew.assigned) == (2, keeps)


def test_commits() -> None:
    desk = Desk()
    desk.join("m")
    assert desk.group.check_commit("m", 1) == errors.NONE
    assert desk.group.check_commit("m", 0) == errors.STALE_MEMBER_EPOCH
    assert desk.group.check_commit("n", 1) == errors.UNKNOWN_MEMBER_ID


def test_other_wishes_and_other_partitions() -> None:
    desk = Desk()
    desk.join("m")
    results = desk.beat("m", 1, names=frozenset({"a", "b"}))
    assert (results.epoch, results.assigned) == (2, ALL | parts(B, 0, 1))
    desk.look(Topics({"a": A}, {A: 6}))
    results = desk.beat("m", 2, ALL | parts(B, 0, 1))
    assert results.assigned == ALL, "first it lets go what is gone"
    results = desk.beat("m", 2, ALL)
    assert (results.epoch, results.assigned) == (3, parts(A, *range(6)))


def test_patterns() -> None:
    desk = Desk()
    beat = Heartbeat("m", 0, None, None, 60.0, None, "a|b", owned=frozenset())
    assert desk.group.heartbeat(beat, desk.now).assigned == ALL | parts(B, 0, 1)
    assert (desk.group.patterns(), desk.group.names()) == ({"a|b"}, set())


def test_topics_that_are_not_there_yet() -> None:
    desk = Desk()
    assert desk.join("m", "c").assigned == frozenset()
    desk.look(Topics({"c": B}, {B: 1}))
    assert desk.beat("m", 1).assigned == parts(B, 0)


def test_assignors() -> None:
    desk = Desk()
    desk.join("m", assignor="range")
    desk.join("n", assignor="range")
    assert desk.group.assignor == "range"
    assert desk.group.targets == {"m": parts(A, 0, 1), "n": parts(A, 2, 3)}
    desk.join("m", assignor="uniform")
    assert desk.group.assignor in ("range", "uniform")


# -- static members -------------------------------------------------------------------------------


def test_a_static_member_comes_back_to_what_it_had() -> None:
    desk = Desk()
    desk.join("m", instance="one")
    desk.join("n")
    keeps = desk.beat("m", 1, instance="one").assigned
    desk.beat("m", 1, keeps, instance="one")
    desk.beat("n", 2)
    assert desk.beat("m", -2, instance="one").epoch == -2
    epoch = desk.group.epoch
    assert desk.beat("n", 2).assigned is None, "it waits for the one that is away"
    back = desk.join("m2", instance="one")
    assert (back.error_code, back.epoch, back.assigned) == (0, epoch, keeps)
    assert desk.group.state is ConsumerState.STABLE
    assert desk.beat("m", 2, instance="one").error_code == errors.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_out() -> None:
    desk = Desk()
    desk.join("m", instance="one")
    desk.join("n")
    desk.beat("m", -2, instance="one")
    desk.wait(30)
    assert desk.beat("n", 2).assigned is None
    desk.wait(16)
    assert desk.beat("n", 2).assigned == ALL


def test_an_instance_that_is_there_is_not_replaced() -> None:
    desk = Desk()
    desk.join("m", instance="one")
    assert desk.join("m2", instance="one").error_code == errors.UNRELEASED_INSTANCE_ID
    assert desk.join("m", instance="two").error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.beat("m", 1, instance="two").error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.beat("m", -1, instance="one").error_code == errors.NONE
    assert desk.join("m2", instance="one").error_code == errors.NONE


# -- limits ---------------------------------------------------------------------------------------


def test_size() -> None:
    desk = Desk(size_max=1)
    desk.join("m")
    assert desk.join("n").error_code == errors.GROUP_MAX_SIZE_REACHED
    assert desk.join("m").error_code == errors.NONE


def test_room() -> None:
    desk = Desk(bytes_max=10_000)
    assert desk.join("m", "a" * 10_000).error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert desk.join("m").error_code == errors.NONE
    desk.look(Topics({"a": A}, {A: 1000}))
    assert desk.beat("m", 1, ALL).assigned is None, "there is no room for them"
    desk.look(Topics({"a": A}, {A: 5}))
    assert desk.beat("m", 1, ALL).assigned == parts(A, *range(5))
    desk.group.die()
    assert desk.memory.used_bytes == 0
    assert desk.join("m").error_code == errors.UNKNOWN_MEMBER_ID


def test_after_a_restart_all_is_as_everybody_was_told() -> None:
    desk = Desk()
    desk.join("m")
    desk.join("s", instance="i")
    mine = desk.beat("m", 1).assigned
    assert mine is not None
    assert desk.beat("m", 1, mine).epoch == 2
    assert desk.beat("s", 2, instance="i").assigned == ALL - mine
    assert desk.group.dirty
    after = desk.restarted()
    assert not after.group.dirty
    assert after.memory.used_bytes == desk.memory.used_bytes
    after.look(THERE)
    results = after.beat("m", 2, mine)
    assert (results.error_code, results.epoch, results.assigned) == (errors.NONE, 2, None)
    assert after.beat("s", 2, ALL - mine, instance="i").assigned is None
    assert after.group.state is ConsumerState.STABLE
    assert not after.group.dirty
    after.wait(46)
    assert after.group.state is ConsumerState.EMPTY
    assert after.group.dirty
    assert after.group.stored() is None


def test_who_was_letting_go_has_the_time_for_it_anew() -> None:
    desk = Desk()
    desk.join("m")
    desk.join("n")
    results = desk.beat("m", 1)
    assert results.assigned is not None
    desk.wait(40)
    after = desk.restarted()
    after.look(THERE)
    assert after.beat("n", 2).assigned is None, "it may still be reading"
    after.beat("m", 1, ALL)
    after.wait(40)
    assert after.beat("m", 1, results.assigned).error_code == errors.NONE
    assert after.beat("n", 2).assigned == ALL - results.assigned


def test_only_what_changes_is_to_be_kept() -> None:
    desk = Desk()
    desk.join("s", instance="i")
    assert desk.group.dirty
    desk.group.stored()
    desk.beat("s", 1, ALL, instance="i")
    assert not desk.group.dirty
    desk.beat("s", -2, instance="i")
    assert desk.group.dirty
    after = desk.restarted()
    after.look(THERE)
    assert after.join("t", instance="i").assigned == ALL, "it is back, and finds what it had"
