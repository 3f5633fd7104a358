"""The same line a thousand times is a line and a number."""

import logging

import pytest

from magnetar.core.kernel import complaints
from magnetar.core.kernel.complaints import KEYS_MAX, LINES_MAX, WINDOW_SECONDS, Complaints
from magnetar.core.testing.clock import FixedClock


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger=complaints.__name__)
    return lambda: [record.getMessage() for record in caplog.records]


def test_the_first_are_said_and_the_rest_are_counted(said):
    clock = FixedClock()
    received = Complaints(clock)
    for number in range(1000):
        received.say("nonsense", "1.2.3.4", f"1.2.3.4:{number}: closed")
    assert said()[:LINES_MAX] == [f"1.2.3.4:{number}: closed" for number in range(LINES_MAX)]
    assert len(said()) == LINES_MAX + 1, "and one that says that it goes on quietly"
    clock.forward(WINDOW_SECONDS)
    received.count_up()
    assert len(said()) == LINES_MAX + 2
    assert f"{1000 - LINES_MAX} more" in said()[-1]
    assert "1.2.3.4:999: closed" in said()[-1]


def test_who_looks_closely_sees_each(said, caplog):
    caplog.set_level(logging.DEBUG, logger=complaints.__name__)
    received = Complaints(FixedClock())
    for number in range(100):
        received.say("a", "1.1.1.1", f"no {number}")
    assert {f"no {number}" for number in range(100)} <= set(said())


def test_another_kind_and_another_address_are_said(said):
    received = Complaints(FixedClock())
    for kind, host in [("a", "1.1.1.1"), ("b", "1.1.1.1"), ("a", "2.2.2.2")]:
        received.say(kind, host, f"{kind} {host}")
    assert said() == ["a 1.1.1.1", "b 1.1.1.1", "a 2.2.2.2"]


def test_nothing_more_is_said_of_what_was_said_in_full(said):
    clock = FixedClock()
    received = Complaints(clock)
    received.say("a", "1.1.1.1", "once")
    clock.forward(WINDOW_SECONDS)
    received.count_up()
    received.say("a", "1.1.1.1", "twice")
    assert said() == ["once", "twice"]


def test_however_many_addresses_there_are_few_are_told_apart(said):
    received = Complaints(FixedClock())
    for number in range(3 * KEYS_MAX):
        received.say("a", f"address {number}", "x")
    assert len(said()) <= KEYS_MAX + LINES_MAX + 1
