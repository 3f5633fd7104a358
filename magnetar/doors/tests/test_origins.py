"""Which pages may open a WebSocket."""

from __future__ import annotations

import pytest

from magnetar.doors.origins import Origins
from magnetar.wire.http.guard import HostNames

HOSTS = HostNames(("mq.example.org",))


@pytest.mark.parametrize(
    ("origin", "host", "permitted"),
    [
        ("http://localhost:3000", "localhost:8083", True),
        ("http://localhost:3000", "127.0.0.1:8083", True),
        ("http://127.0.0.1", "[::1]:8083", True),
        ("https://mq.example.org", "mq.example.org:8084", True),
        ("https://MQ.example.org:444", "mq.example.org", True),
        ("http://10.0.0.7:8000", "10.0.0.7:8083", True),
        ("https://evil.example", "localhost:8083", False),
        ("https://evil.example", "evil.example:8083", False),  # its name points here
        ("http://203.0.113.5", "10.0.0.7:8083", False),
        ("http://203.0.113.5", "localhost:8083", False),
        ("https://app.example.org", "mq.example.org", False),
        ("null", "localhost:8083", False),
        ("file://", "localhost:8083", False),
        ("http://[::1", "localhost:8083", False),
        ("http://localhost.evil.example", "localhost:8083", False),
        ("", "localhost:8083", False),
    ],
)
def test_pages_of_this_server(origin: str, host: str, permitted: bool) -> None:
    assert Origins(HOSTS, ()).permit(origin, host) is permitted


def test_pages_that_are_named() -> None:
    origins = Origins(HOSTS, ("https://app.example.org/",))
    assert origins.permit("https://App.example.org", "mq.example.org")
    assert not origins.permit("http://app.example.org", "mq.example.org")
    assert Origins(HOSTS, ("*",)).permit("null", "anything")
