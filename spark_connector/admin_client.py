"""Asks the server by HTTP, with retries. It blocks, as all in Spark's processes does.

A server that does not answer is asked again, and after it the next of several addresses, until the
time is over. So every question must bear to be asked twice: an answer may be lost. Of several, the
one that has answered last is asked first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import cycle
from ssl import SSLEOFError
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from magnetar.spark_connector.errors import NotOursError, OptionError, RefusedError, ServiceError
from magnetar.spark_connector.security import NOTHING_SAID, SHOWN, QuerySecurity, check_trust

PAUSE_SECONDS: Final = 0.2
ATTEMPT_SECONDS: Final = 10.0
"""One of several servers is given so long."""

MESSAGE_PACK: Final = "application/vnd.msgpack"
HEADERS: Final = {"Content-Type": "application/json", "Accept": f"{MESSAGE_PACK}, */*"}


_answering: dict[tuple[str, ...], int] = {}
"""The place of the address that has answered last. Tasks and batches have clients of their own, and
a process mostly the same addresses.
"""


class Reply(Struct, frozen=True):
    """An answer of HTTP."""

    url: str
    """The address that was asked."""
    status: int
    headers: Any
    body: bytes


def not_ours(url: str, path: str, why: object) -> NotOursError:
    """The error for an answer that a server of ours would not give."""
    return NotOursError(
        f'{url} answers {path} with something else than Magnetar does ({why}): is "service.url" '
        "the server's HTTP address?"
    )


class AdminClient:
    """See the module's docstring."""

    def __init__(
        self, urls: Sequence[str], timeout_seconds: float, security: QuerySecurity = NOTHING_SAID
    ) -> None:
        self._connections: dict[str, HTTPConnection] = {}
        """To each address at most one, which is open while nothing is asked."""
        self.urls = tuple(urls)
        self._timeout_seconds = timeout_seconds
        for url in urls:
            _check(url)
        self.is_secure = any(urlsplit(url).scheme == "https" for url in urls)
        self._context = security.context() if self.is_secure else None
        self._login = security.login
        self._shows_none = self.is_secure and not security.certificate

    def __del__(self) -> None:
        self.close()  # Spark does not say when a query is over

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None, kind: Any) -> Any:
        """The answer, as a value of type `kind`, None for an empty one; `RefusedError` if the
        server says no.
        """
        reply = self.reply(method, path, body)
        if reply.status == 204 and kind is None:
            return None
        is_packed = reply.headers.get("Content-Type") == MESSAGE_PACK
        decode = msgspec.msgpack.decode if is_packed else msgspec.json.decode
        try:
            return decode(reply.body, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise not_ours(reply.url, path, error) from error

    def reply(self, method: str, path: str, body: Mapping[str, Any] | None) -> Reply:
        """The same as it came."""
        until = time.monotonic() + self._timeout_seconds
        data = None if body is None else msgspec.json.encode(body)
        begin, number = _answering.get(self.urls, 0), len(self.urls)
        for place in cycle((begin + each) % number for each in range(number)):
            url = self.urls[place]
            seconds = until - time.monotonic()
            if len(self.urls) > 1:
                seconds = min(seconds, ATTEMPT_SECONDS)
            try:
                reply = self._request(url, method, path, data, seconds)
            except (OSError, HTTPException) as error:
                check_trust(error, url)
                failure = f"{url} does not answer: {error}{self._hint(error)}"
            else:
                if reply.status < 500:
                    _answering[self.urls] = place
                if reply.status in (200, 204):
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
        a new one.
        """
        kept = self._connections.pop(url, None)
        connection = kept or self._connection(url)
        connection.timeout = max(seconds, 0.1)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            headers = {**HEADERS, **self._login.header()}
            connection.request(method, urlsplit(url).path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            reply = Reply(url, response.status, response.headers, response.read())
        except (ConnectionError, SSLEOFError, HTTPException):
            connection.close()
            if kept is None:
                raise
            return self._request(url, method, path, body, seconds)
        except BaseException:
            connection.close()
            raise
        if self._connections.setdefault(url, connection) is not connection:
            connection.close()  # another thread has kept one
        return reply

    def _hint(self, error: Exception) -> str:
        """A server that asks for a certificate, and is shown none, may hang up without TLS's alert:
        before the request is written, while it is, or after.
        """
        hung_up = (ConnectionResetError, BrokenPipeError, SSLEOFError)
        if self._shows_none and isinstance(error, hung_up):
            return f" (does it ask for a certificate? {SHOWN})"
        return ""

    def _connection(self, url: str) -> HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return HTTPSConnection(parts.hostname or "", parts.port, context=self._context)
        return HTTPConnection(parts.hostname or "", parts.port)


def _check(url: str) -> None:
    """Refuse what is no address of a server."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port, or of brackets
        known = False
    if not known:
        raise OptionError(f'"service.url" is like http://host:8080, not "{url}"')


def _reason(answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer)["reason"])
    except (msgspec.MsgspecError, UnicodeError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
