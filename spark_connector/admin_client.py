"""Asks the server by HTTP, with retries. It blocks, as all in Spark's processes does.

A server that does not answer is asked again, and after it the next of several addresses, until the
time is over. So every question must bear to be asked twice: an answer may be lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import cycle
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from magnetar.spark_connector.errors import OptionError, RefusedError, ServiceError

PAUSE_SECONDS: Final = 0.2
ATTEMPT_SECONDS: Final = 10.0
"""One of several servers is given so long."""


class AdminClient:
    """See the module's docstring."""

    def __init__(self, urls: Sequence[str], timeout_seconds: float) -> None:
        self.urls = urls
        self._timeout_seconds = timeout_seconds
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise OptionError(f'"service.url" is like http://host:8080, not "{url}"')

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None, kind: Any) -> Any:
        """The answer, as a value of type `kind`, or None for an empty one; `RefusedError` if the
        server says no.
        """
        until = time.monotonic() + self._timeout_seconds
        data = None if body is None else msgspec.json.encode(body)
        for url in cycle(self.urls):
            seconds = until - time.monotonic()
            if len(self.urls) > 1:
                seconds = min(seconds, ATTEMPT_SECONDS)
            try:
                status, answer = _request(url, method, path, data, seconds)
            except (OSError, HTTPException) as error:
                failure = f"{url} does not answer: {error}"
            else:
                if status == 204:
                    return None
                if status == 200:
                    return msgspec.json.decode(answer, type=kind)
                failure = f"{url} answers {status}: {_reason(answer)}"
                if status < 500:
                    raise RefusedError(failure)
            if time.monotonic() + PAUSE_SECONDS >= until:
                break
            time.sleep(PAUSE_SECONDS)
        raise ServiceError(failure)


def _request(
    url: str, method: str, path: str, body: bytes | None, seconds: float
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=max(seconds, 0.1))
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, parts.path.rstrip("/") + path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _reason(answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer)["reason"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
