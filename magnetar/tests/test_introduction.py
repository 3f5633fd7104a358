"""What a server says of itself in its log."""

import logging

import pytest

from magnetar.introduction import introduce, say_who_may_connect
from magnetar.settings import load


def test_without_a_file_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        introduce(load("[storage]\nsync = false").settings, "")
    first, second, third = caplog.messages
    assert first.startswith("Magnetar ")
    assert second == "configuration: no file"
    assert third.endswith("messages are not synced")


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
        say_who_may_connect({"pulsar": address})
    assert caplog.records[-1].levelname == level
