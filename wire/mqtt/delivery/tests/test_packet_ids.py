"""Identifiers of messages on their way, beside a plain model of them."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.wire.mqtt.delivery.packet_ids import PACKET_ID_MAX, PacketIds

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
