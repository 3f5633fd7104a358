"""Requests as handlers see them."""

from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.wire.http.request import DISCONNECTED, AdminRequest, plain
from magnetar.wire.http.services import HttpServices
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor


def ask_of(
    visitor: Visitor, messages: list[Any], query: bytes = b"", **params: str
) -> AdminRequest:
    """A request whose body comes as `messages`."""
    parts = iter(messages)

    async def receive() -> Any:
        return next(parts)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "root_path": "/admin/v2/persistent",
        "query_string": query,
        "headers": [],
        "path_params": params,
    }
    return AdminRequest(HttpServices(visitor.broker, OPTIONS, tuple), Request(scope, receive))


async def test_paths_are_decoded_once(visitor: Visitor) -> None:
    ask = ask_of(visitor, [], tenant="t", namespace="n", topic="a%2520b", subscription="x%2Fy")
    assert ask.topic.full == "persistent://t/n/a%20b"
    assert ask.subscription == "x/y"
    assert ask.domain == "persistent"


async def test_paths_that_are_no_text(visitor: Visitor) -> None:
    with pytest.raises(InvalidName):
        ask_of(visitor, [], topic="%FF").part("topic")


async def test_queries(visitor: Visitor) -> None:
    ask = ask_of(visitor, [], b"force=TRUE&no=false&n=-5&bad=x")
    assert (ask.flag("force"), ask.flag("no"), ask.flag("missing")) == (True, False, False)
    assert (ask.number("n", 1), ask.number("missing", 1)) == (-5, 1)
    with pytest.raises(Invalid):
        ask.number("bad", 1)


async def test_bodies_come_in_parts(visitor: Visitor) -> None:
    parts = [
        {"type": "http.request", "body": b'{"a":', "more_body": True},
        {"type": "http.request", "body": b' "1"}', "more_body": False},
    ]
    assert await ask_of(visitor, parts).value(dict[str, int]) == {"a": 1}


async def test_clients_that_go_meanwhile(visitor: Visitor) -> None:
    parts = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    with pytest.raises(HTTPException) as raised:
        await ask_of(visitor, parts).body()
    assert raised.value.status_code == DISCONNECTED


def test_values_are_read_as_leniently_as_jackson_does() -> None:
    assert plain(b'"5"', int) == 5
    assert plain(b'"true"', bool) is True
    with pytest.raises(Invalid):
        plain(b'"many"', int)
    with pytest.raises(Invalid):
        plain(b"\xff", str)
