"""Rounds of a group: who comes, who goes, who is told what, and when."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.ledger_store import Done
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.group_record import StoredGroup, decode, encode
from magnetar.wire.kafka.groups.classic.join_phase import RebalanceRules
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.classic.state import ClassicGroupState
from magnetar.wire.kafka.groups.memory_budget import GroupMemory

NEWER = (("range", b"newer"),)


class Desk:
    """A group, a clock, and what its members hear."""

    def __init__(self, delay: float = 0.0, size_max: int = 10, bytes_max: int = 1_000_000) -> None:
        numbers = itertools.count(1)
        self.memory = GroupMemory(bytes_max)
        self.soon: list[Callable[[], None]] = []
        rules = RebalanceRules(
            size_max, delay, lambda name: f"{name}-{next(numbers)}", self._keep, self.soon.append
        )
        self.kept: list[StoredGroup | None] = []
        self.keeps_at_once = True
        self.waiting: list[Done] = []
        self.group = Group("g", rules, self.memory)
        self.now = 100.0

    def _keep(self, _: str, kept: StoredGroup | None, done: Done) -> None:
        self.kept.append(kept)
        if self.keeps_at_once:
            done(None)
        else:
            self.waiting.append(done)

    def restarted(self) -> Desk:
        """The group as it is after a restart."""
        desk, kept = Desk(), self.kept[-1]
        assert kept is not None
        desk.now = self.now
        desk.group.resume(decode(encode(kept)), self.now)
        return desk

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.group.members]

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"r"),),
        kind: str = "consumer",
        id_required: bool = False,
        may_skip: bool = True,
        alone: bool = True,
    ) -> list[Joined]:
        """`alone`: nobody else comes in the same turn of the loop."""
        results: list[Joined] = []
        request = Joining(
            member_id=member_id,
            instance_id=instance,
            client_id="client",
            host="/127.0.0.1",
            session_seconds=10.0,
            rebalance_seconds=60.0,
            protocol_type=kind,
            protocols=protocols,
            id_required=id_required,
            may_skip=may_skip,
        )
        self.group.join(request, self.now, results.append)
        while alone and self.turn():
            pass
        return results

    def turn(self) -> bool:
        """Let the loop come round once; whether there was something to do then."""
        due, self.soon[:] = self.soon[:], []
        for call in due:
            call()
        return bool(due)

    def sync(
        self, member: Joined, assignments: dict[str, bytes] | None = None, generation: int = 0
    ) -> list[Synced]:
        results: list[Synced] = []
        request = Syncing(
            member.member_id, generation or member.generation, assignments=assignments or {}
        )
        self.group.sync(request, self.now, results.append)
        return results

    def beat(self, member: Joined) -> int:
        return self.group.heartbeat(member.member_id, member.generation, None, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.group.tick(self.now)

    def pair(self) -> tuple[Joined, Joined]:
        """A stable group of two; the first leads."""
        (alone,) = self.join()
        waiting = self.join()
        (first,) = self.join(alone.member_id)
        (second,) = waiting
        mine = self.sync(second)
        (task,) = self.sync(first, {first.member_id: b"1", second.member_id: b"2"})
        assert (task.assignment, mine[0].assignment) == (b"1", b"2")
        assert self.group.state is ClassicGroupState.STABLE
        return first, second


def test_the_first_leads_and_is_told_at_once() -> None:
    desk = Desk()
    (first,) = desk.join()
    assert (first.error_code, first.generation, first.leader) == (0, 1, first.member_id)
    assert first.members == ((first.member_id, None, b"r"),)
    (task,) = desk.sync(first, {first.member_id: b"all"})
    assert task.assignment == b"all"


def test_a_second_has_everybody_come_again() -> None:
    desk = Desk()
    first, second = desk.pair()
    assert first.generation == second.generation == 2
    assert len(first.members) == 2
    assert second.members == ()
    assert (desk.beat(first), desk.beat(second)) == (errors.NONE, errors.NONE)


def test_who_waits_for_a_task_hears_of_a_new_round() -> None:
    desk = Desk()
    first, second = desk.pair()
    third = desk.join()
    assert desk.beat(first) == errors.REBALANCE_IN_PROGRESS
    assert desk.sync(first)[0].error_code == errors.REBALANCE_IN_PROGRESS
    (again,) = [desk.join(first.member_id), desk.join(second.member_id)][0]
    waiting = desk.sync(third[0])
    desk.join()
    assert waiting[0].error_code == errors.REBALANCE_IN_PROGRESS
    assert again.generation == 3


def test_a_newcomer_comes_again_with_its_id() -> None:
    desk = Desk()
    (results,) = desk.join(id_required=True)
    assert results.error_code == errors.MEMBER_ID_REQUIRED
    assert desk.group.state is ClassicGroupState.EMPTY
    (joined,) = desk.join(results.member_id, id_required=True)
    assert (joined.error_code, joined.member_id) == (0, results.member_id)
    (results,) = desk.join(id_required=True)
    desk.wait(11)
    assert desk.join(results.member_id)[0].error_code == errors.UNKNOWN_MEMBER_ID


def test_who_does_not_come_again_is_out() -> None:
    desk = Desk()
    first, second = desk.pair()
    waiting = desk.join()
    for _ in range(7):
        desk.beat(first)
        desk.beat(second)
        desk.wait(9)
    assert waiting[0].generation == 3
    assert desk.ids == [waiting[0].member_id]
    assert desk.beat(first) == errors.UNKNOWN_MEMBER_ID


def test_silence() -> None:
    desk = Desk()
    first, second = desk.pair()
    desk.wait(9)
    assert desk.beat(first) == errors.NONE
    desk.wait(2)
    assert desk.ids == [first.member_id]
    assert desk.beat(first) == errors.REBALANCE_IN_PROGRESS
    assert desk.beat(second) == errors.UNKNOWN_MEMBER_ID
    desk.wait(11)
    assert desk.group.state is ClassicGroupState.EMPTY


def test_leaving() -> None:
    desk = Desk()
    first, second = desk.pair()
    assert desk.group.leave(second.member_id, None, desk.now) == errors.NONE
    assert desk.group.leave(second.member_id, None, desk.now) == errors.UNKNOWN_MEMBER_ID
    (alone,) = desk.join(first.member_id)
    assert alone.generation == 3
    assert desk.group.leave(alone.member_id, None, desk.now) == errors.NONE
    assert desk.group.state is ClassicGroupState.EMPTY


def test_a_leader_that_leaves_has_a_successor() -> None:
    desk = Desk()
    first, second = desk.pair()
    desk.group.leave(first.member_id, None, desk.now)
    (alone,) = desk.join(second.member_id)
    assert alone.leader == second.member_id


def test_who_asks_again_with_nothing_new_is_told_the_same() -> None:
    desk = Desk()
    first, second = desk.pair()
    (same,) = desk.join(second.member_id)
    assert same.generation == second.generation
    assert desk.group.state is ClassicGroupState.STABLE
    assert desk.join(first.member_id) == [], "the leader begins a round"
    assert desk.group.state is ClassicGroupState.PREPARING_REBALANCE


def test_generations_and_commits() -> None:
    desk = Desk()
    first, _ = desk.pair()
    group = desk.group
    assert group.may_commit(first.member_id, 2, None, desk.now) == errors.NONE
    assert group.may_commit(first.member_id, 1, None, desk.now) == errors.ILLEGAL_GENERATION
    assert group.may_commit("nobody", 2, None, desk.now) == errors.UNKNOWN_MEMBER_ID
    assert desk.sync(first, generation=1)[0].error_code == errors.ILLEGAL_GENERATION
    desk.join()
    assert group.may_commit(first.member_id, 2, None, desk.now) == errors.NONE


def test_protocols() -> None:
    desk = Desk()
    both = (("sticky", b"s"), ("range", b"r"))
    (first,) = desk.join(protocols=both)
    assert desk.join(protocols=(("other", b""),))[0].error_code == (
        errors.INCONSISTENT_GROUP_PROTOCOL
    )
    assert desk.join(kind="connect")[0].error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    waiting = desk.join(protocols=(("range", b"r2"), ("other", b"")))
    (again,) = desk.join(first.member_id, protocols=both)
    assert (again.protocol, waiting[0].protocol) == ("range", "range")
    assert {metadata for _, _, metadata in again.members} == {b"r", b"r2"}


def test_size() -> None:
    desk = Desk(size_max=1)
    desk.join()
    assert desk.join()[0].error_code == errors.GROUP_MAX_SIZE_REACHED


def test_ids_that_are_out_count_as_well() -> None:
    desk = Desk(size_max=2)
    desk.join()
    assert desk.join(id_required=True)[0].error_code == errors.MEMBER_ID_REQUIRED
    assert desk.join(id_required=True)[0].error_code == errors.GROUP_MAX_SIZE_REACHED


def test_the_first_may_wait_for_others() -> None:
    desk = Desk(delay=3)
    first = desk.join()
    desk.wait(2)
    second = desk.join()
    desk.wait(1)
    assert first == second == [], "somebody has come: it goes on"
    desk.wait(3)
    assert first[0].generation == second[0].generation == 1


def test_gathering_has_an_end_however_many_come() -> None:
    desk = Desk(delay=3, size_max=100)
    first = desk.join()
    for _ in range(30):
        desk.wait(2)
        desk.join()
    desk.wait(1)
    assert first[0].generation == 1


def test_a_later_round_waits_for_ids_that_are_out() -> None:
    desk = Desk()
    first, second = desk.pair()
    desk.join(id_required=True)
    waiting = [desk.join(first.member_id, protocols=NEWER), desk.join(second.member_id)]
    assert waiting == [[], []]
    desk.wait(10)
    assert waiting[0][0].generation == first.generation + 1, "whoever got the id is not back"


def test_the_first_round_waits_for_nobody() -> None:
    desk = Desk()
    first, second = desk.join(id_required=True)[0], desk.join(id_required=True)[0]
    (begun,) = desk.join(first.member_id, id_required=True)
    assert (begun.generation, len(begun.members)) == (1, 1)
    waiting = desk.join(second.member_id, id_required=True)
    assert waiting == []
    assert desk.beat(begun) == errors.REBALANCE_IN_PROGRESS
    (again,) = desk.join(first.member_id)
    assert (again.generation, len(again.members)) == (2, 2)
    assert waiting[0].generation == 2


def test_who_comes_in_the_same_turn_is_in_the_first_round() -> None:
    desk = Desk()
    first = desk.join(alone=False)
    second = desk.join(alone=False)
    assert desk.turn()
    assert first == second == [], "somebody has come: one turn more"
    assert desk.turn()
    assert (first[0].generation, second[0].generation) == (1, 1)
    assert not desk.turn()


def test_a_first_round_that_loses_everybody_ends_quietly() -> None:
    desk = Desk()
    results = desk.join(instance="i", alone=False)
    assert desk.group.leave("", "i", desk.now) == errors.NONE
    desk.turn()
    assert results[0].error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.join()[0].error_code == errors.NONE


def test_an_id_may_be_given_back() -> None:
    desk = Desk()
    first, second = desk.pair()
    (out,) = desk.join(id_required=True)
    waiting = [desk.join(first.member_id, protocols=NEWER), desk.join(second.member_id)]
    assert waiting == [[], []]
    assert desk.group.leave(out.member_id, None, desk.now) == errors.NONE
    assert waiting[0][0].generation == waiting[1][0].generation == first.generation + 1


def test_who_joins_twice_is_told_twice() -> None:
    desk = Desk()
    first, _ = desk.pair()
    before = desk.join(first.member_id)
    after = desk.join(first.member_id)
    assert before[0].error_code == errors.REBALANCE_IN_PROGRESS
    assert after == []


def test_who_syncs_twice_is_told_twice() -> None:
    desk = Desk()
    (alone,) = desk.join()
    second = desk.join()
    (first,) = desk.join(alone.member_id)
    before, after = desk.sync(second[0]), desk.sync(second[0])
    assert before[0].error_code == errors.REBALANCE_IN_PROGRESS
    desk.sync(first, {second[0].member_id: b"2"})
    assert after[0].assignment == b"2"


def test_who_does_not_sync_is_out() -> None:
    desk = Desk()
    (alone,) = desk.join()
    second = desk.join()
    (first,) = desk.join(alone.member_id)
    waiting = desk.sync(second[0])
    for _ in range(8):
        desk.wait(8)
        desk.beat(first)
    assert waiting[0].error_code == errors.REBALANCE_IN_PROGRESS
    assert desk.ids == [second[0].member_id]


def test_a_sync_by_another_protocol() -> None:
    desk = Desk()
    first, _ = desk.pair()

    def code(kind: str | None, name: str | None) -> int:
        results: list[Synced] = []
        request = Syncing(first.member_id, first.generation, None, kind, name)
        desk.group.sync(request, desk.now, results.append)
        return results[0].error_code

    assert code("consumer", "range") == code(None, None) == errors.NONE
    assert code("connect", "range") == errors.INCONSISTENT_GROUP_PROTOCOL
    assert code("consumer", "sticky") == errors.INCONSISTENT_GROUP_PROTOCOL


def test_a_newcomer_whose_connection_is_gone_does_not_wait_for_ever() -> None:
    desk = Desk()
    first, second = desk.pair()
    desk.join()
    for _ in range(40):
        desk.beat(first)
        desk.beat(second)
        desk.wait(9)
    assert desk.group.state is not ClassicGroupState.PREPARING_REBALANCE


def test_room_is_taken_and_given_back() -> None:
    desk = Desk(bytes_max=100_000)
    large = (("range", bytes(60_000)),)
    (first,) = desk.join(protocols=large)
    assert desk.join(protocols=large)[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    too_much = {first.member_id: bytes(60_000)}
    assert desk.sync(first, too_much)[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    desk.sync(first, {first.member_id: bytes(10_000)})
    assert desk.join(first.member_id, protocols=large)[0].error_code == errors.NONE
    desk.join(id_required=True)
    desk.wait(20)
    assert desk.group.is_over
    assert desk.memory.used_bytes == 0


def test_a_static_member_comes_back_without_a_round() -> None:
    desk = Desk()
    (first,) = desk.join(instance="one")
    desk.sync(first, {first.member_id: b"1"})
    (back,) = desk.join(instance="one")
    assert (back.generation, back.skip_assignment) == (1, True)
    assert back.member_id != first.member_id
    assert desk.group.state is ClassicGroupState.STABLE
    assert desk.group.heartbeat(first.member_id, 1, "one", desk.now) == (errors.FENCED_INSTANCE_ID)
    assert desk.group.heartbeat(back.member_id, 1, "one", desk.now) == errors.NONE
    assert desk.sync(back)[0].assignment == b"1"
    assert desk.group.leave("", "one", desk.now) == errors.NONE
    assert desk.group.leave("", "one", desk.now) == errors.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_knows_of_no_skipping_follows() -> None:
    desk = Desk()
    (first,) = desk.join(instance="one")
    desk.sync(first, {first.member_id: b"1"})
    (back,) = desk.join(instance="one", may_skip=False)
    assert (back.leader, back.members, back.skip_assignment) == (first.member_id, (), False)
    assert desk.sync(back)[0].assignment == b"1"
    assert desk.join(back.member_id, instance="one")[0].generation == 2, "it leads all the same"


def test_a_static_member_that_brings_another_protocol_begins_a_round() -> None:
    desk = Desk()
    (first,) = desk.join(instance="one")
    desk.sync(first)
    (back,) = desk.join(instance="one", protocols=(("sticky", b"s"),))
    assert (back.generation, back.protocol, back.skip_assignment) == (2, "sticky", False)


def test_a_static_member_that_waits_is_fenced_by_its_successor() -> None:
    desk = Desk()
    first, _ = desk.pair()
    before = desk.join(instance="one")
    after = desk.join(instance="one")
    assert before[0].error_code == errors.FENCED_INSTANCE_ID
    desk.join(first.member_id)
    assert after == []
    desk.wait(60)
    assert after[0].generation == 3


def test_static_members_stay_when_they_miss_a_round() -> None:
    desk = Desk()
    (static,) = desk.join(instance="one")
    (alone,) = desk.join(static.member_id, instance="one")
    waiting = desk.join()
    for _ in range(9):
        desk.wait(8)
        desk.group.heartbeat(alone.member_id, alone.generation, "one", desk.now)
    assert waiting[0].leader == waiting[0].member_id
    assert desk.ids == [alone.member_id, waiting[0].member_id]


def test_an_instance_that_is_not_in_is_no_member() -> None:
    desk = Desk()
    first, _ = desk.pair()
    (results,) = desk.join(first.member_id, instance="new")
    assert results.error_code == errors.UNKNOWN_MEMBER_ID
    (static,) = desk.join(instance="one") or [None]
    assert static is None
    (results,) = desk.join(first.member_id, instance="one")
    assert results.error_code == errors.FENCED_INSTANCE_ID


def test_a_group_that_is_deleted() -> None:
    desk = Desk()
    first, _ = desk.pair()
    waiting = desk.join()
    desk.group.die()
    assert waiting[0].error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.beat(first) == errors.UNKNOWN_MEMBER_ID
    assert desk.join()[0].error_code == errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("protocols", [(), (("range", b""),)])
def test_requests_that_name_nothing(protocols: tuple[tuple[str, bytes], ...]) -> None:
    kind = "" if protocols else "consumer"
    (results,) = Desk().join(kind=kind, protocols=protocols)
    assert results.error_code == errors.INCONSISTENT_GROUP_PROTOCOL


# -- what outlasts a restart ---------------------------------------------------------------------


def test_nobody_hears_what_to_do_before_it_is_kept() -> None:
    desk = Desk()
    desk.keeps_at_once = False
    (first,) = desk.join()
    task = desk.sync(first, {first.member_id: b"1"})
    assert task == []
    assert desk.beat(first) == errors.NONE
    assert desk.group.may_commit(first.member_id, 1, None, desk.now) == errors.REBALANCE_IN_PROGRESS
    again = desk.sync(first, {first.member_id: b"2"})
    assert (task[0].error_code, again) == (errors.REBALANCE_IN_PROGRESS, [])
    assert len(desk.kept) == 1, "what was said first holds"
    desk.waiting.pop()(None)
    assert again[0].assignment == b"1"
    assert desk.group.state is ClassicGroupState.STABLE


def test_what_cannot_be_kept_is_said_again() -> None:
    desk = Desk()
    desk.keeps_at_once = False
    (first,) = desk.join()
    task = desk.sync(first, {first.member_id: bytes(100)})
    used = desk.memory.used_bytes
    desk.waiting.pop()(StorageFailed("for now"))
    assert task[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert desk.memory.used_bytes == used - 100
    (same,) = desk.join(first.member_id)
    assert same.generation == first.generation
    task = desk.sync(first, {first.member_id: b"1"})
    desk.waiting.pop()(None)
    assert task[0].assignment == b"1"


def test_a_round_that_begins_while_tasks_are_kept_goes_before() -> None:
    desk = Desk()
    desk.keeps_at_once = False
    (first,) = desk.join()
    task = desk.sync(first, {first.member_id: b"1"})
    second = desk.join()
    assert task[0].error_code == errors.REBALANCE_IN_PROGRESS
    desk.waiting.pop()(None)
    assert desk.group.state is ClassicGroupState.PREPARING_REBALANCE
    (first,) = desk.join(first.member_id)
    assert first.generation == second[0].generation == 2
    assert desk.sync(second[0]) == []


def test_after_a_restart_all_is_as_it_was() -> None:
    desk = Desk()
    first, second = desk.pair()
    used = desk.memory.used_bytes
    desk = desk.restarted()
    assert desk.memory.used_bytes == used
    assert (desk.group.state, desk.group.leader) == (ClassicGroupState.STABLE, first.member_id)
    assert desk.beat(first) == desk.beat(second) == errors.NONE
    assert desk.group.may_commit(second.member_id, 2, None, desk.now) == errors.NONE
    assert desk.sync(second)[0].assignment == b"2"
    (results,) = desk.join(second.member_id)
    assert results.generation == 2, "it had not heard, or asks in vain"
    desk.wait(9)
    assert desk.beat(first) == errors.NONE
    desk.wait(2)
    assert desk.beat(first) == errors.REBALANCE_IN_PROGRESS, "the other one is silent"
    (alone,) = desk.join(first.member_id)
    assert (alone.generation, len(alone.members)) == (3, 1)
    desk.wait(61)
    assert desk.kept == [None], "nobody is in any more"


def test_a_new_id_of_a_static_member_is_kept_before_it_is_told() -> None:
    desk = Desk()
    (old,) = desk.join(instance="i")
    desk.sync(old, {old.member_id: b"1"})
    desk.keeps_at_once = False
    new = desk.join(instance="i")
    assert new == []
    desk.waiting.pop()(None)
    assert (new[0].generation, new[0].skip_assignment) == (1, True)
    after = desk.restarted()
    assert after.ids == [new[0].member_id]
    assert after.group.check(new[0].member_id, 1, "i") == errors.NONE
    newer = desk.join(instance="i")
    desk.waiting.pop()(StorageFailed("for now"))
    assert newer[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    newest = desk.join(instance="i")
    begins = desk.join(instance="j")
    assert newest[0].generation == begins[0].generation == 2, "it hears of the newer round"
    desk.waiting.pop()(None)
    assert len(newest) == 1
