"""Who is in, and what that takes."""

from magnetar.wire.kafka.groups.classic.member import NEVER, ClassicMember, Joining
from magnetar.wire.kafka.groups.classic.members import Members
from magnetar.wire.kafka.groups.memory_budget import GroupMemory


def request(instance: str | None = None, data: bytes = b"") -> Joining:
    return Joining("", instance, "c", "/h", 10.0, 1.0, "consumer", (("a", data),), False)


def test_members_take_room_and_give_it_back() -> None:
    memory = GroupMemory(100_000)
    members = Members(memory)
    member = ClassicMember("m", request("one"), 5.0)
    members.add(member)
    before = memory.used_bytes
    members.give(member, b"x" * 100)
    members.change(member, request("one", b"y" * 50))
    assert memory.used_bytes == before + 150
    assert (len(members), members.static("one"), members.static(None)) == (1, "m", None)
    assert member in members
    assert ClassicMember("m", request(), 0.0) not in members, "another one of the same name"
    assert members.due == 15.0
    for one in members:
        members.drop(one)
    assert (memory.used_bytes, len(members), members.static("one"), members.due) == (
        0,
        0,
        None,
        NEVER,
    )


def test_ids_that_are_out() -> None:
    memory = GroupMemory(100_000)
    members = Members(memory)
    members.expect("id", 7.0)
    assert (members.expected, members.expects("id"), members.due) == (1, True, 7.0)
    assert (members.overdue(6.0), members.overdue(7.0)) == ([], ["id"])
    assert members.unexpect("id")
    assert not members.unexpect("id")
    assert memory.used_bytes == 0
