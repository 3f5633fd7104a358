"""Certificates of people, and a server that knows people by them."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from interop_tests.keys import Authority
from magnetar import Standalone, standalone

from .pulsar_people import NAMESPACE

DOORS = ("pulsar", "kafka", "mqtt", "https")


class People:
    """An authority, a server that trusts it, and `root`, the server's superuser."""

    def __init__(self, authority: Authority, server: Standalone) -> None:
        self.authority = authority
        self.server = server
        self._pairs: dict[str, tuple[str, str]] = {}

    def pair(self, name: str) -> tuple[str, str]:
        """Paths of somebody's certificate and key."""
        if name not in self._pairs:
            self._pairs[name] = self.authority.issue(name)
        return self._pairs[name]

    def trust(self, name: str | None = None, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
        """The context of a client that shows somebody's certificate, that pair, or none."""
        made = ssl.create_default_context(cafile=self.authority.certificate)
        if name is not None:
            pair = self.pair(name)
        if pair is not None:
            made.load_cert_chain(*pair)
        return made

    def http(self, name: str | None = None, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.server.https_url, verify=self.trust(name), **options)

    def grant(self, role: str, *actions: str) -> None:
        with self.http("root") as root:
            root.post(f"{NAMESPACE}/permissions/{role}", json=actions).raise_for_status()

    def revoke(self, role: str) -> None:
        with self.http("root") as root:
            root.delete(f"{NAMESPACE}/permissions/{role}").raise_for_status()


@contextmanager
def certified(
    folder: Path, security: dict[str, Any] | None = None, **client_auth: str
) -> Iterator[People]:
    """A server that asks for certificates, and lets those come to its doors who show none."""
    authority = Authority(folder, "ours")
    certificate, key = authority.issue("server")
    modes = {f"{door}_client_auth": client_auth.get(door, "requested") for door in DOORS}
    tls = {"certificate": certificate, "key": key, "client_ca": authority.certificate, **modes}
    chosen = {"client_certificates": True, "superusers": ["root"], **(security or {})}
    with standalone(tls=tls, security=chosen) as server:
        yield People(authority, server)
