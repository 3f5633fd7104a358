"""Who is in, and what that takes."""

from magnetar.wire.kafka.groups.classic.member import NEVER, ClassicMember, Joining
from magnetar.wire.kafka.groups.classic.roster import Roster
from magnetar.wire.kafka.groups.memory_budget import GroupMemory


def request(instance: str | None = None, data: bytes = b"") -> Joining:
    return Joining("", instance, "c", "/h", 10.0, 1.0, "consumer", (("a", data),), False)


def test_members_take_room_and_give_it_back() -> None:
    room = GroupMemory(100_000)
    roster = Roster(room)
    member = ClassicMember("m", request("one"), 5.0)
    roster.add(member)
    before = room.used_bytes
    roster.give(member, b"x" * 100)
    roster.change(member, request("one", b"y" * 50))
    assert room.used_bytes == before + 150
    assert (len(roster), roster.static("one"), roster.static(None)) == (1, "m", None)
    assert member in roster
    assert ClassicMember("m", request(), 0.0) not in roster, "another one of the same name"
    assert roster.due == 15.0
    for one in roster:
        roster.drop(one)
    assert (room.used_bytes, len(roster), roster.static("one"), roster.due) == (0, 0, None, NEVER)


def test_ids_that_are_out() -> None:
    room = GroupMemory(100_000)
    roster = Roster(room)
    roster.expect("id", 7.0)
    assert (roster.expected, roster.expects("id"), roster.due) == (1, True, 7.0)
    assert (roster.overdue(6.0), roster.overdue(7.0)) == ([], ["id"])
    assert roster.unexpect("id")
    assert not roster.unexpect("id")
    assert room.used_bytes == 0
