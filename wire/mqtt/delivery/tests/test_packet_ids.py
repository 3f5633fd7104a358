"""Identifiers of messages on their way, beside a plain model of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.wire.mqtt.delivery.packet_ids import PACKET_ID_MAX, RUNS_MAX, PacketIds

WINDOW = 5


class Exchange(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ids: PacketIds[int] = PacketIds(WINDOW)
        self.model: list[tuple[int, int, str]] = []
        """Number, message and what is waited for, in the order in which they went."""
        self.sent = 0

    @precondition(lambda self: len(self.model) < WINDOW)
    @rule(qos=st.sampled_from([1, 2]))
    def send(self, qos: int) -> None:
        number = self.ids.begin(self.sent, qos)
        assert 0 < number <= PACKET_ID_MAX
        assert number not in [each for each, _, _ in self.model]
        self.model.append((number, self.sent, "puback" if qos == 1 else "pubrec"))
        self.sent += 1

    @precondition(lambda self: len(self.model) < WINDOW)
    @rule(count=st.integers(0, WINDOW), qos=st.sampled_from([1, 2]))
    def send_together(self, count: int, qos: int) -> None:
        messages = range(self.sent, self.sent + min(count, self.ids.room))
        numbers = self.ids.begin_many(messages, qos)
        assert len(numbers) == len(messages)
        waits = "puback" if qos == 1 else "pubrec"
        self.model += [(n, one, waits) for n, one in zip(numbers, messages, strict=True)]
        self.sent += len(messages)

    @rule(
        numbers=st.lists(st.integers(1, 40), max_size=6)
        | st.builds(lambda first, count: range(first, first + count),
                    st.integers(1, 40), st.integers(2, 6)),
        kind=st.sampled_from(["puback", "error", "pubcomp"]),
    )  # fmt: skip
    def acknowledge_together(self, numbers: Sequence[int], kind: str) -> None:
        take = {
            "puback": self.ids.all_acknowledged,
            "error": self.ids.all_refused,
            "pubcomp": self.ids.all_completed,
        }[kind]
        before = len(self.model)
        expected = {message for number, message, waits in self.model
                    if number in numbers and self._fits(kind, waits)}  # fmt: skip
        self.model = [one for one in self.model if one[1] not in expected]
        ended = take(numbers)
        assert ended.total == before - len(self.model) == len(expected)
        assert expected.issuperset(ended.alone)

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, WINDOW + 1))
    def acknowledge_in_order(self, count: int) -> None:
        first = self.model[0][0]
        self.acknowledge_together(range(first, first + count), "puback")

    @rule(number=st.integers(0, 40), kind=st.sampled_from(["puback", "pubrec", "error", "pubcomp"]))
    def acknowledge(self, number: int, kind: str) -> None:
        take = {
            "puback": self.ids.acknowledged,
            "pubrec": self.ids.received,
            "error": self.ids.refused,
            "pubcomp": self.ids.completed,
        }[kind]
        expected = None
        for place, (each, message, waits) in enumerate(self.model):
            if each == number and self._fits(kind, waits):
                expected = message
                if kind == "pubrec":
                    self.model[place] = (each, message, "pubcomp")
                else:
                    del self.model[place]
                break
        assert take(number) == expected

    @staticmethod
    def _fits(kind: str, waits: str) -> bool:
        if kind in ("pubrec", "error"):  # PUBREC may come again
            return waits in ("pubrec", "pubcomp")
        return waits == kind

    @invariant()
    def as_the_model_has_it(self) -> None:
        assert len(self.ids) == len(self.model)
        assert self.ids.is_full == (len(self.model) == WINDOW)
        assert [(number, one.message, one.released) for number, one in self.ids] == [
            (number, message, waits == "pubcomp") for number, message, waits in self.model
        ]


TestExchange = Exchange.TestCase
TestExchange.settings = settings(max_examples=60, deadline=None)


def test_identifiers_in_use_are_skipped_when_they_come_round() -> None:
    ids: PacketIds[str] = PacketIds(10)
    ids.resume(PACKET_ID_MAX, "last", 1, released=False)
    assert [ids.begin("x", 1) for _ in range(2)] == [1, 2]
    ids.resume(PACKET_ID_MAX - 1, "before", 2, released=True)
    assert ids.begin("x", 1) == 3, "the last and the first two are in use"


@pytest.mark.parametrize("released", [False, True])
def test_what_was_on_its_way_before_a_restart(released: bool) -> None:
    ids: PacketIds[str] = PacketIds(10)
    ids.resume(7, "a", 2, released=released)
    assert ids.completed(7) == ("a" if released else None)


def test_many_runs_acknowledged_in_order_and_otherwise() -> None:
    ids: PacketIds[str] = PacketIds(100)
    for _ in range(RUNS_MAX + 4):
        ids.begin_many("abc", 1)
    assert ids.all_acknowledged(range(1, 50)).total == 49, "the mapping, then the queue"
    assert [number for number, _ in ids] == list(range(50, 61))
    assert ids.all_acknowledged([51]).total == 1
    assert ids.all_acknowledged(range(50, 100)).total == 10
    assert not len(ids)


def test_messages_that_are_sent_together_where_identifiers_end() -> None:
    ids: PacketIds[str] = PacketIds(10)
    ids.resume(PACKET_ID_MAX - 1, "before", 1, released=False)
    assert list(ids.begin_many("abc", 1)) == [PACKET_ID_MAX, 1, 2]
    assert [one.message for _, one in ids] == ["before", "a", "b", "c"]
    assert ids.all_acknowledged([PACKET_ID_MAX, 1, 1]).total == 2
    assert list(ids.claim_many(PACKET_ID_MAX, "xyz", 1)) == [PACKET_ID_MAX, 1], "2 is in use"
    assert list(ids.claim_many(3, "xy", 1)) == [3, 4]
    ended = ids.all_acknowledged([3, 4])
    assert (ended.total, ended.alone) == (2, [])
    assert len(ids) == 4
