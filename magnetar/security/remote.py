"""A JWKS document behind a URL, fetched now and again.

Invariant: what was fetched last stays in force until another document is there.
"""

import ipaddress
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import trio

from magnetar.operator_error import OperatorError

log = logging.getLogger(__name__)

DOCUMENT_BYTES_MAX: Final = 1024 * 1024
FETCH_SECONDS: Final = 10.0
FETCH_AGAIN_SECONDS: Final = 300.0
FETCH_SOONER_SECONDS: Final = 10.0
"""The least time between two fetches when a token names an unknown key."""
REMOTE: Final = ("https", "http")


class RemoteDocument:
    """A JWKS document behind a URL."""

    def __init__(self, setting: str, url: str, take: Callable[[bytes], None]) -> None:
        self.setting = setting
        self._url = url
        self._shown = without_password(url)
        self._take = take
        self._wanted = trio.Event()

    def want(self) -> None:
        """Fetch it soon: a token named a key that it does not have."""
        self._wanted.set()

    async def run(self) -> None:
        """Fetch it now and again until cancelled. Until it is there, tokens are refused."""
        failed = False
        while True:
            try:
                self._take(await trio.to_thread.run_sync(self._fetch, abandon_on_cancel=True))
                if failed:
                    log.warning("%s: %s is there again", self.setting, self._shown)
                failed = False
            except (OSError, ValueError) as error:
                log.error("%s: cannot use %s: %s", self.setting, self._shown, error)
                failed = True
            await trio.sleep(FETCH_SOONER_SECONDS)
            if not failed:
                with trio.move_on_after(FETCH_AGAIN_SECONDS - FETCH_SOONER_SECONDS):
                    await self._wanted.wait()
            self._wanted = trio.Event()

    def _fetch(self) -> bytes:
        import urllib.request  # with its HTTP client, which most servers do not need

        request = urllib.request.Request(self._url, headers={"Accept": "application/json"})
        with urllib.request.urlopen(request, timeout=FETCH_SECONDS) as answer:
            found: bytes = answer.read(DOCUMENT_BYTES_MAX + 1)
        if len(found) > DOCUMENT_BYTES_MAX:
            raise ValueError(f"it has more than {DOCUMENT_BYTES_MAX} bytes")
        return found


def check_way(setting: str, url: str) -> None:
    """Keys that come over a network without TLS may be anybody's; raises `OperatorError`."""
    parts = urlsplit(url)
    if parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return
    raise OperatorError(
        f"{setting}: whoever is on the way could put in keys of their own: it has to be https, "
        f"and not {without_password(url)}"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def without_password(url: str) -> str:
    """A URL as it may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def is_remote(where: str) -> bool:
    return urlsplit(where).scheme in REMOTE
