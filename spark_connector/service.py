"""Asks the server where the messages of topics are: a few requests by HTTP, for each query.

A server that does not answer is asked again, and after it the next of several addresses, until the
time is over. It runs in the driver; workers ask bookies only, or with `readFrom=gateway` for
entries.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import cycle, islice
from struct import Struct as Layout
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from magnetar.core.ledger.read.reading_plan import EntryPlace, Place, ReadingPlan
from magnetar.spark_connector.errors import OptionError, RefusedError, ServiceError

PAUSE_SECONDS: Final = 0.2
ATTEMPT_SECONDS: Final = 10.0
"""One of several servers is given so long."""
LEDGERS_AT_ONCE: Final = 1_000
CURSORS_AT_ONCE: Final = 2_000
READING: Final = "/admin/v2/reading"
_ENTRY: Final = Layout(">qI").unpack_from
_ENTRY_BYTES: Final = 12


class TopicPlans(Struct, frozen=True):
    """What is known of topics."""

    topics: Mapping[str, ReadingPlan]
    partitions: Mapping[str, int]
    """Of partitioned topics, their number."""
    missing: Sequence[str]


class _Positions(Struct, frozen=True):
    positions: Mapping[str, EntryPlace]


class _Ledgers(Struct, frozen=True):
    ledgers: Mapping[str, str]
    bookies: Mapping[str, str]
    missing: Sequence[int]


class _Moved(Struct, frozen=True):
    missing: Sequence[str]


class LedgerFacts(Struct, frozen=True):
    """Metadata of ledgers, and addresses of bookies."""

    ledgers: dict[int, bytes]
    bookies: dict[str, tuple[str, int]]


class StoredEntries(Struct, frozen=True):
    """Entries by their ids; `following` is the first that was not read, `lost` why it cannot be."""

    entries: list[tuple[int, bytes]]
    following: int
    lost: str


class Reply(Struct, frozen=True):
    """An answer of HTTP."""

    status: int
    headers: Any
    body: bytes


class ReadingService:
    """See the module's docstring."""

    def __init__(self, urls: Sequence[str], timeout_seconds: float) -> None:
        self._connections: dict[str, HTTPConnection] = {}
        self._urls = urls
        self._timeout_seconds = timeout_seconds
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise OptionError(f'"service.url" is like http://host:8080, not "{url}"')

    def topics(self, names: Sequence[str]) -> TopicPlans:
        found: TopicPlans = self._ask(
            "POST", f"{READING}/topics", {"topics": list(names)}, TopicPlans
        )
        return found

    def topics_of(self, namespace: str) -> list[str]:
        """All topics and partitions of a namespace."""
        found: list[str] = self._ask("GET", f"/admin/v2/persistent/{namespace}", None, list[str])
        return found

    def positions(
        self, offsets: Mapping[str, int], times: Mapping[str, int]
    ) -> dict[str, EntryPlace]:
        """The entries of messages, by their offsets or times."""
        body = {"offsets": offsets, "times": times}
        found: _Positions = self._ask("POST", f"{READING}/positions", body, _Positions)
        return dict(found.positions)

    def ledgers(self, ids: Sequence[int]) -> LedgerFacts:
        """Of those that exist."""
        found = LedgerFacts({}, {})
        for start in range(0, len(ids), LEDGERS_AT_ONCE):
            body = {"ledgers": ids[start : start + LEDGERS_AT_ONCE]}
            some = self._ask("POST", f"{READING}/ledgers", body, _Ledgers)
            for ledger_id, metadata in some.ledgers.items():
                found.ledgers[int(ledger_id)] = b64decode(metadata)
            for bookie, address in some.bookies.items():
                host, _, port = address.rpartition(":")
                found.bookies[bookie] = host.strip("[]"), int(port)
        return found

    def move_cursors(self, subscription: str, places: Mapping[str, Place]) -> None:
        """Have a subscription of this reader's follow it; on topics that are gone there is none."""
        moves = {topic: (place.ledger_id, place.entry_id) for topic, place in places.items()}
        left = iter(moves.items())
        while some := dict(islice(left, CURSORS_AT_ONCE)):
            body = {"subscription": subscription, "positions": some}
            self._ask("POST", f"{READING}/cursors", body, _Moved)

    def entries(self, topic: str, ledger_id: int, first: int, last: int) -> StoredEntries:
        """Some entries of a ledger, from the first on."""
        body = {"topic": topic, "ledger": ledger_id, "first": first, "last": last}
        reply = self._reply("POST", f"{READING}/entries", body)
        found, data, at = [], reply.body, 0
        while at < len(data):
            entry_id, size = _ENTRY(data, at)
            at += _ENTRY_BYTES
            found.append((entry_id, data[at : at + size]))
            at += size
        following = int(reply.headers["magnetar-next-entry"])
        return StoredEntries(found, following, reply.headers.get("magnetar-lost-entry", ""))

    def __del__(self) -> None:
        self.close()  # Spark does not say when a query is over

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, kind: Any) -> Any:
        return msgspec.json.decode(self._reply(method, path, body).body, type=kind)

    def _reply(self, method: str, path: str, body: Mapping[str, Any] | None) -> Reply:
        until = time.monotonic() + self._timeout_seconds
        data = None if body is None else msgspec.json.encode(body)
        for url in cycle(self._urls):
            seconds = until - time.monotonic()
            if len(self._urls) > 1:
                seconds = min(seconds, ATTEMPT_SECONDS)
            try:
                reply = self._request(url, method, path, data, seconds)
            except (OSError, HTTPException) as error:
                failure = f"{url} does not answer: {error}"
            else:
                if reply.status == 200:
                    return reply
                failure = f"{url} answers {reply.status}: {_reason(reply.body)}"
                if reply.status < 500:
                    raise RefusedError(failure)
            if time.monotonic() + PAUSE_SECONDS >= until:
                break
            time.sleep(PAUSE_SECONDS)
        raise ServiceError(failure)

    def _request(
        self, url: str, method: str, path: str, body: bytes | None, seconds: float
    ) -> Reply:
        """One request, on the connection of the last one if the server has kept it: else again, on
        a new one. Each may be carried out twice.
        """
        kept = self._connections.pop(url, None)
        connection = kept or _connection(url)
        connection.timeout = max(seconds, 0.1)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, urlsplit(url).path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            reply = Reply(response.status, response.headers, response.read())
        except (ConnectionError, HTTPException):
            connection.close()
            if kept is None:
                raise
            return self._request(url, method, path, body, seconds)
        except BaseException:
            connection.close()
            raise
        self._connections[url] = connection
        return reply


def _connection(url: str) -> HTTPConnection:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port)


def _reason(answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer)["reason"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
