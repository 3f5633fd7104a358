"""What begins like another protocol."""

import pytest

from magnetar.core.link.foreign_protocols import NO_HTTP, HttpAddress, answer, spoken


@pytest.mark.parametrize(
    ("begin", "name"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /x HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"GETTING", ""),
        (b"\x00\x00\x00\x10\x00\x00\x00\x0c", ""),
        (b"", ""),
    ],
)
def test_what_begins_so(begin: bytes, name: str) -> None:
    assert spoken(begin) == name


def test_only_http_is_answered() -> None:
    said = answer("HTTP", "127.0.0.1:8080")
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert b"http://127.0.0.1:8080/" in body
    assert answer("HTTP", "") == b""
    assert answer("TLS", "127.0.0.1:8080") == b""


def test_where_http_is_depends_on_how_a_peer_came() -> None:
    assert HttpAddress("", 80).reached_from("127.0.0.1") == "127.0.0.1:80"
    assert HttpAddress("", 80).reached_from("::1") == "[::1]:80"
    assert HttpAddress("broker", 80).reached_from("::1") == "broker:80"
    assert NO_HTTP.reached_from("127.0.0.1") == ""
