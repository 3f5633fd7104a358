"""One member of a group of the newer protocol."""

from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat, Topics
from magnetar.wire.kafka.groups.consumer.member import ConsumerMember

A = (b"a", 0)


def test_what_is_left_out_has_not_changed() -> None:
    member = ConsumerMember("m", None)
    first = Heartbeat("m", 0, None, "rack", 60.0, frozenset("t"), "p", "range", frozenset())
    assert member.apply(first, 1.0)
    assert not member.apply(Heartbeat("m", 1), 2.0)
    assert (member.names, member.pattern, member.assignor) == (frozenset("t"), "p", "range")
    assert (member.rack_id, member.rebalance_seconds, member.call_by) == ("rack", 60.0, 2.0)
    assert not member.apply(Heartbeat("m", 1, names=frozenset("t")), 3.0)
    assert member.apply(Heartbeat("m", 1, pattern=""), 3.0), "it wants no pattern any more"


def test_wishes_by_name_and_by_pattern() -> None:
    member = ConsumerMember("m", None)
    member.apply(Heartbeat("m", 0, names=frozenset({"a", "gone"}), pattern="b.*"), 0.0)
    topics = Topics({"a": b"A", "b": b"B", "c": b"C"}, {}, {"b.*": frozenset("b")})
    assert member.wants(topics) == {b"A", b"B"}


def test_one_answer_may_be_missed() -> None:
    member = ConsumerMember("m", None)
    member.assigned = {A}
    member.takes_epoch(3)
    member.takes_epoch(4)
    assert member.knows(Heartbeat("m", 4))
    assert member.knows(Heartbeat("m", 3, owned=frozenset({A})))
    assert not member.knows(Heartbeat("m", 3))
    assert not member.knows(Heartbeat("m", 3, owned=frozenset({(b"b", 0)})))
    assert not member.knows(Heartbeat("m", 2, owned=frozenset()))
    assert not member.knows(Heartbeat("m", 5, owned=frozenset()))
