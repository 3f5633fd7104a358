"""One member: what it waits for, and how long it may be silent."""

from typing import Any

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.groups.classic.member import (
    NEVER,
    NEWCOMER_SECONDS,
    ClassicMember,
    Joined,
    Joining,
    Synced,
)

REQUEST = Joining("", None, "c", "/h", 10.0, 1.0, "consumer", (("a", b"1"), ("b", b"2")), False)


def test_what_it_waits_for_is_told_once() -> None:
    member, results = ClassicMember("m", REQUEST, 0.0), list[Any]()
    member.joins(results.append)
    member.joins(results.append)
    assert [one.error_code for one in results] == [errors.REBALANCE_IN_PROGRESS]
    member.answer_join(Joined(generation=1))
    member.answer_join(Joined(generation=2))
    member.syncs(results.append)
    member.refuse(errors.UNKNOWN_MEMBER_ID)
    member.answer_sync(Synced())
    assert [type(one) for one in results] == [Joined, Joined, Synced]
    assert results[-1].error_code == errors.UNKNOWN_MEMBER_ID


def test_silence() -> None:
    member = ClassicMember("m", REQUEST, 5.0)
    assert member.expires == 15.0
    member.joins(lambda _: None)
    assert member.expires == 5.0 + NEWCOMER_SECONDS
    member.is_new = False
    assert member.expires == NEVER
    member.answer_join(Joined())
    member.syncs(lambda _: None)
    assert member.expires == NEVER


def test_what_it_says_under_a_protocol() -> None:
    assert ClassicMember("m", REQUEST, 0.0).metadata("b") == b"2"
