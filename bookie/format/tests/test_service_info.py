"""What a bookie publishes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import service_info
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.kernel.errors import Corrupted, Invalid, NotFound

TEXT = st.text(max_size=10)
ENDPOINTS = st.builds(
    BookieEndpoint,
    name=TEXT,
    host=TEXT,
    port=st.integers(0, 65535),
    protocol=TEXT,
    auth=st.lists(TEXT, max_size=2).map(tuple),
    extensions=st.lists(TEXT, max_size=2).map(tuple),
)


def test_the_bytes_of_a_stock_bookie():
    data = bytes.fromhex("32220a06626f6f6b696510ed181a093132372e302e302e31220a626f6f6b69652d727063")
    found = service_info.decode("127.0.0.1:3181", data)
    assert found == ServiceInfo((BookieEndpoint("bookie", "127.0.0.1", 3181),))
    assert found.encode() == data


def test_a_bookie_that_publishes_nothing_is_at_its_id():
    assert service_info.decode("host:3181", b"").rpc() == BookieEndpoint("host:3181", "host", 3181)
    for bookie_id in ("mine", "mine:x", "host:"):
        with pytest.raises(Corrupted, match="no HOST:PORT"):
            service_info.decode(bookie_id, b"")


def test_clients_need_the_endpoint_of_the_protocol():
    http = BookieEndpoint("httpserver", "h", 8000, service_info.HTTP)
    bookie = BookieEndpoint("bookie", "h", 3181)
    assert ServiceInfo((http, bookie)).rpc() == bookie
    with pytest.raises(NotFound, match="bookie-rpc"):
        ServiceInfo((http,)).rpc()


def test_what_makes_no_sense_is_named():
    with pytest.raises(Corrupted, match="bookie b publishes makes no sense"):
        service_info.decode("b", b"\xff\xff")


@given(st.lists(ENDPOINTS, max_size=3).map(tuple), st.dictionaries(TEXT, TEXT, max_size=3))
def test_all_that_is_published_comes_back(endpoints, properties):
    made = ServiceInfo(endpoints, properties)
    data = made.encode()
    if data:
        assert service_info.decode("b", data) == made


@given(st.binary(max_size=60))
def test_hostile_bytes_are_corrupted_or_something(data):
    with contextlib.suppress(Corrupted):
        service_info.decode("host:1", data)


def test_ids():
    for bookie_id in ("127.0.0.1:3181", "bookie-1.example", "a_b"):
        service_info.check_id(bookie_id)
    for bookie_id in ("", "readonly", "a/b", "a b", "a\n", "é"):
        with pytest.raises(Invalid):
            service_info.check_id(bookie_id)
