"""What members of a group have, they have on the other side, too."""

from __future__ import annotations

from magnetar.wire.kafka.groups import migration
from magnetar.wire.kafka.groups.classic import consumer_protocol
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.group_record import Classic, StoredGroup, StoredMember
from magnetar.wire.kafka.groups.classic.join_phase import RebalanceRules
from magnetar.wire.kafka.groups.classic.state import ClassicGroupState
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup, ConsumerState
from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat, Timing
from magnetar.wire.kafka.groups.consumer.tests.test_group import ALL, THERE, A, B, parts
from magnetar.wire.kafka.groups.memory_budget import GroupMemory


def member(
    name: str, task: bytes, *, instance: str | None = None, version: int = 1
) -> StoredMember:
    said = consumer_protocol.subscription({"a", "gone"}, version)
    return StoredMember(
        name, instance, "c", "/h", 10.0, 20.0, (("range", said), ("own", said)), task
    )


def classic_group(*members: StoredMember, generation: int = 7) -> Group:
    memory = GroupMemory()
    group = Group("g", RebalanceRules(10, 0.0, str, lambda *_: None, lambda call: call()), memory)
    group.resume(StoredGroup(generation, "consumer", "range", members[0].member_id, members), 0.0)
    return group


def newer_group() -> ConsumerGroup:
    group = ConsumerGroup("g", 10, Timing(5.0, 45.0), GroupMemory())
    group.set_topics(THERE, 0.0)
    return group


def test_over_and_back() -> None:
    task = consumer_protocol.assignment({"a": [0, 1], "gone": [3]}, 1)
    rest = consumer_protocol.assignment({"a": [2, 3]}, 1)
    before = classic_group(member("m", task), member("n", rest, instance="i"))
    kept = migration.moved_over(before, THERE)
    assert kept is not None
    assert (kept.epoch, kept.sizes) == (7, {A: 4})
    group = newer_group()
    group.resume(kept, 0.0)
    group.set_topics(THERE, 0.0)
    assert (group.epoch, group.state) == (7, ConsumerState.STABLE), "nobody has to do anything yet"
    assert group.is_left_to_classic
    assert group.members["m"].assigned == parts(A, 0, 1)
    assert group.members["m"].classic == Classic(("range", "own"), 1, 10.0)
    assert group.members["n"].instance_id == "i"
    back = migration.moved_back(group)
    assert (back.generation, back.protocol_type, back.leader) == (7, "consumer", "m")
    after = classic_group(*back.members)
    assert after.state is ClassicGroupState.STABLE
    assert consumer_protocol.assignment_in(
        back.members[0].assignment
    ) == consumer_protocol.assignment_in(consumer_protocol.assignment({"a": [0, 1]}, 1))
    assert back.members[1] == member("n", rest, instance="i")


def test_back_amid_a_change() -> None:
    """One knows of it and one does not: the last to be told has the generation."""
    kept = migration.moved_over(
        classic_group(
            member("m", consumer_protocol.assignment({"a": [0, 1, 2, 3]}, 0)), member("n", b"")
        ),
        THERE,
    )
    assert kept is not None
    group = newer_group()
    group.resume(kept, 0.0)
    joins = Heartbeat("x", 0, rebalance_seconds=60.0, names=frozenset("a"), owned=frozenset())
    group.heartbeat(joins, 0.0)
    group.heartbeat(Heartbeat("x", -1), 0.0)
    assert group.is_left_to_classic
    comes = Heartbeat(
        "n", 7, names=frozenset("ab"), owned=frozenset(), classic=kept.members[1].classic
    )
    assert group.heartbeat(comes, 0.0).assigned == parts(B, 0, 1)
    assert migration.moved_back(group).generation == group.epoch > 7


def test_of_a_partition_that_two_were_given_one_has_it() -> None:
    task = consumer_protocol.assignment({"a": [0, 1, 2, 3]}, 0)
    kept = migration.moved_over(classic_group(member("m", task), member("n", task)), THERE)
    assert kept is not None
    assert [one.assigned for one in kept.members] == [ALL, frozenset()]


def test_a_group_that_has_not_been_told_anything() -> None:
    kept = migration.moved_over(classic_group(member("m", b""), generation=0), THERE)
    assert kept is not None
    assert (kept.epoch, kept.members[0].epoch, kept.members[0].assigned) == (1, 1, frozenset())


def test_who_does_not_say_what_it_wants_stays() -> None:
    silent = StoredMember("m", None, "c", "/h", 10.0, 20.0, (("range", b"?"),), b"")
    assert migration.moved_over(classic_group(silent), THERE) is None
