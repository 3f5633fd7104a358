"""How many ledgers the server is asked for at once; and answers that no server of ours gives: each
is an error that says who gave it, and none hangs.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from magnetar.spark_connector.admin_client import AdminClient, Reply
from magnetar.spark_connector.errors import NotOursError, OptionError
from magnetar.spark_connector.options import parse
from magnetar.spark_connector.service import (
    LEDGERS_AT_ONCE,
    NAMED_BYTES_AT_ONCE,
    NAMES_AT_ONCE,
    ReadingService,
    _named,
    _portions,
)
from magnetar.spark_connector.stream import FRESH, MicroBatches

TOPIC = "persistent://public/default/t"
LEDGER = [1, 0, 3, 194, True, 1, 0]
PAGE = b"<html>Please log in</html>"


class Stranger(HTTPServer):
    """Answers every question with the same."""

    body = b""
    headers: dict[str, str]
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.headers = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Stranger

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        if self.server.status != 204:
            self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to standard error."""


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with Stranger() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def service(stranger: Stranger) -> Iterator[ReadingService]:
    made = ReadingService([stranger.url], 5.0)
    yield made
    made.close()


def plan(topic: str = TOPIC, kept: str = "") -> bytes:
    row = [[1, 0, 0], [1, 3, 3], [1, 3, 3], [[*LEDGER, kept]], []]
    return json.dumps({"partitions": {}, "missing": [], "logs": {topic: [row]}}).encode()


def ledgers(**found: object) -> bytes:
    return json.dumps({"ledgers": {}, "bookies": {}, "missing": []} | found).encode()


@pytest.mark.parametrize(
    ("body", "ask"),
    [
        (PAGE, lambda service: service.topics([TOPIC])),
        (b"", lambda service: service.topics([TOPIC])),
        (b'{"logs": "\xff"}', lambda service: service.topics([TOPIC])),
        (b"[]", lambda service: service.topics([TOPIC])),
        (plan(topic="a/b"), lambda service: service.topics([TOPIC])),
        (plan(kept="nowhere"), lambda service: service.topics([TOPIC])),
        (ledgers(ledgers={"one": ""}), lambda service: service.ledgers({TOPIC: [1]})),
        (ledgers(ledgers={"1": "a"}), lambda service: service.ledgers({TOPIC: [1]})),
        (ledgers(bookies={"b": "nowhere"}), lambda service: service.ledgers({TOPIC: [1]})),
    ],
)
def test_what_is_no_answer(
    stranger: Stranger,
    service: ReadingService,
    body: bytes,
    ask: Callable[[ReadingService], object],
) -> None:
    stranger.body = body
    with pytest.raises(NotOursError, match=f"{stranger.url} answers .*service.url"):
        ask(service)


def test_nothing_at_all(stranger: Stranger, service: ReadingService) -> None:
    stranger.status = 204
    with pytest.raises(NotOursError):
        service.topics([TOPIC])


@pytest.mark.parametrize(
    ("body", "following"),
    [
        (PAGE, None),
        (b"", None),
        (b"", "soon"),
        (b"", "5"),  # nothing is read, for ever
        (b"", "9"),  # more than was asked for
        (bytes(5), "6"),
        (struct.pack(">qI", 5, 100) + b"less", "6"),
    ],
)
def test_what_are_no_entries(
    stranger: Stranger, service: ReadingService, body: bytes, following: str | None
) -> None:
    stranger.body = body
    stranger.headers = {} if following is None else {"magnetar-next-entry": following}
    with pytest.raises(NotOursError):
        service.entries(TOPIC, 1, 5, 7)


def test_entries_as_they_are_given(stranger: Stranger, service: ReadingService) -> None:
    stranger.body = struct.pack(">qI", 5, 2) + b"ab" + struct.pack(">qI", 7, 0)
    stranger.headers = {"magnetar-next-entry": "8"}
    assert service.entries(TOPIC, 1, 5, 7).entries == [(5, b"ab"), (7, b"")]


def test_a_server_that_is_away_is_asked_once(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take ten seconds to find that out, each time."""
    stranger.body = plan()
    away = "http://127.0.0.1:1"
    asked = []
    request = AdminClient._request

    def counted(self: AdminClient, url: str, *more: Any) -> Reply:
        asked.append(url)
        return request(self, url, *more)

    monkeypatch.setattr(AdminClient, "_request", counted)
    for _ in range(3):  # as by three tasks in one process
        service = ReadingService([away, stranger.url], 5.0)
        assert list(service.topics([TOPIC]).topics) == [TOPIC]
        service.close()
    assert asked == [away, *[stranger.url] * 3]


def test_a_stream_ends_where_nobody_of_ours_answers(stranger: Stranger) -> None:
    stranger.body = PAGE
    batches = MicroBatches(parse({"service.url": stranger.url, "topic": "t"}, stream=True))
    with pytest.raises(NotOursError):
        batches.latest(dict(FRESH), limited=False)


@pytest.mark.parametrize(
    "url",
    ["localhost:8080", "pulsar://h:6650", "http://h:99999", "http://h:x", "http://[h", "http://"],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(OptionError, match=f'is like http://host:8080, not "{re.escape(url)}"'):
        ReadingService([url], 5.0)


def test_ledgers_are_asked_for_in_portions() -> None:
    wanted = {"a": range(LEDGERS_AT_ONCE - 1), "b": range(3), "c": range(2)}
    first, second = _portions(wanted)
    assert first == {"a": list(range(LEDGERS_AT_ONCE - 1)), "b": [0]}
    assert second == {"b": [1, 2], "c": [0, 1]}
    assert list(_portions({})) == []


def test_long_names_make_portions_smaller() -> None:
    """A server takes 1 MiB of a question."""
    name_bytes = 300
    wanted = {f"{each:0{name_bytes // 2}}é" + "é" * 74: [each] for each in range(5_000)}
    portions = list(_portions(wanted))
    assert sum(map(len, portions)) == 5_000
    largest = max(sum(len(name.encode()) for name in portion) for portion in portions)
    assert NAMED_BYTES_AT_ONCE <= largest < NAMED_BYTES_AT_ONCE + name_bytes


def test_names_are_asked_for_in_portions() -> None:
    assert list(_named([])) == []
    short = [str(each) for each in range(NAMES_AT_ONCE + 1)]
    assert [len(some) for some in _named(short)] == [NAMES_AT_ONCE, 1]
    names = [f"{each:0150}é" + "é" * 74 for each in range(5_000)]
    portions = list(_named(names))
    assert [name for some in portions for name in some] == names
    questions = [dict.fromkeys(some, (1 << 62, 1 << 62)) for some in portions]
    assert max(len(json.dumps(one, ensure_ascii=False).encode()) for one in questions) < 1 << 20
