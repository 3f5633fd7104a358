"""Which protocol a group takes."""

from magnetar.wire.kafka.groups.classic.member import ClassicMember, Joining
from magnetar.wire.kafka.groups.classic.members import Members
from magnetar.wire.kafka.groups.classic.protocols import common, elected, fits
from magnetar.wire.kafka.groups.memory_budget import GroupMemory


def request(*names: str, kind: str = "consumer") -> Joining:
    protocols = tuple((name, name.encode()) for name in names)
    return Joining("", None, "c", "/h", 1.0, 1.0, kind, protocols, False)


def members(*wishes: str) -> list[ClassicMember]:
    return [
        ClassicMember(f"m{at}", request(*names.split()), 0.0) for at, names in enumerate(wishes)
    ]


def test_what_all_have() -> None:
    assert common(members("a b c", "c b")) == {"b", "c"}


def test_the_first_that_most_like() -> None:
    assert elected(members("a b", "b a", "b a")) == "b"
    assert elected(members("x a", "a")) == "a"


def roster(*wishes: str) -> Members:
    found = Members(GroupMemory())
    for member in members(*wishes):
        found.add(member)
    return found


def test_who_can_be_in_one_group() -> None:
    nobody, two = roster(), roster("a b", "b c")
    assert fits(request("a"), None, nobody, None)
    assert not fits(request(), None, nobody, None)
    assert not fits(request("a", kind=""), None, nobody, None)
    assert fits(request("x", "b"), "consumer", two, None)
    assert not fits(request("a"), "consumer", two, None)
    assert not fits(request("b"), "connect", two, None)


def test_what_somebody_knew_before_does_not_matter() -> None:
    two = roster("a b", "b c")
    assert fits(request("c"), "consumer", two, two.get("m0"))
    assert not fits(request("a"), "consumer", two, two.get("m0"))
    one = roster("a")
    assert fits(request("z", kind="connect"), "consumer", one, one.get("m0"))
    one.drop(members("a")[0])
    assert one.knowing("a") == 0
