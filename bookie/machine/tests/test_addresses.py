"""What is no address fails as a connection does."""

import socket

import pytest

from magnetar.bookie.machine.addresses import resolving


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 3181), ("x" * 64, 3181), ("127.0.0.1", 70_000), ("127.0.0.1", -5)]
)
def test_what_is_no_address(host: str, port: int) -> None:
    with pytest.raises(OSError, match=f"{host}:{port} is no address"), resolving(host, port):
        socket.getaddrinfo(host, port)


def test_an_address() -> None:
    with resolving("127.0.0.1", 3181):
        assert socket.getaddrinfo("127.0.0.1", 3181)
