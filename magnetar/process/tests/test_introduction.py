"""What a server says of itself in its log."""

import logging

import pytest

from magnetar.process.introduction import introduce, introduce_first, say_who_may_connect
from magnetar.settings import load
from magnetar.settings.security import Security


def test_without_a_file_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        introduce(load("[storage]\nsync = false").settings, "")
    first, second, third = caplog.messages
    assert first.startswith("Magnetar ")
    assert second == "configuration: no file"
    assert third.endswith("messages are not synced")


def test_it_comes_before_the_first_line_and_once(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("magnetar.something")
    root = logging.getLogger()
    before = {handler: list(handler.filters) for handler in root.handlers}
    try:
        with caplog.at_level(logging.INFO):
            introduce_first(load().settings, "m.toml")
            assert caplog.messages == []
            log.info("one")
            log.info("two")
    finally:
        for handler, filters in before.items():
            handler.filters[:] = filters
    # pytest has two handlers at work, and each is introduced to
    said = list(dict.fromkeys(caplog.messages))
    assert said[0].startswith("Magnetar ")
    assert said[1].endswith("m.toml")
    assert said[3:] == ["one", "two"]


@pytest.mark.parametrize(
    ("address", "level"),
    [
        ("127.0.0.1:6650", "INFO"),
        ("[::1]:6650", "INFO"),
        ("0.0.0.0:6650", "WARNING"),
        ("[::]:6650", "WARNING"),
        ("10.0.0.7:6650", "WARNING"),
    ],
)
def test_who_may_connect(address: str, level: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        say_who_may_connect({"pulsar": address}, Security())
    assert caplog.records[-1].levelname == level


def test_a_process_without_listeners_says_nothing_of_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        say_who_may_connect({}, Security())
    assert not caplog.records
