"""Tokens and passwords of people, and a server that knows them.

Tokens are made by hand here, so that they do not come from the code that verifies them.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from magnetar import Standalone, standalone

SECRET = b"a secret of thirty-two bytes....."
NAMESPACE = "/admin/v2/namespaces/public/default"


def token(name: str, seconds: float | None = None, secret: bytes = SECRET, **claims: Any) -> str:
    """A JSON Web Token (RFC 7519) by HS256; it expires after some seconds."""
    if seconds is not None:
        claims["exp"] = time.time() + seconds
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": name, **claims}]
    said = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    return (said + b"." + _base64(hmac.digest(secret, said, hashlib.sha256))).decode()


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


@contextmanager
def secured(
    folder: Path, tables: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[Standalone]:
    """A server of which `root` is the superuser, and `bob` has the password `builder`; with more
    settings of `security`, and with others.
    """
    key, passwords = folder / "secret.key", folder / "htpasswd"
    key.write_bytes(SECRET)
    digest = base64.b64encode(hashlib.sha1(b"builder").digest()).decode()
    passwords.write_text(f"bob:{{SHA}}{digest}\n")
    for file in (key, passwords):
        file.chmod(0o600)
    security = {
        "token_secret_key": str(key), "htpasswd": str(passwords), "superusers": ["root"]
    }  # fmt: skip
    with standalone(security={**security, **settings}, **(tables or {})) as server:
        yield server


class Administrator:
    """A superuser who changes what others may do."""

    def __init__(self, server: Standalone, proof: str | None = None) -> None:
        """`proof` is a token of the superuser, from elsewhere."""
        headers = {"authorization": f"Bearer {proof or token('root')}"}
        self.http = httpx.Client(base_url=server.http_url, headers=headers)

    def grant(self, role: str, *actions: str, where: str = NAMESPACE) -> None:
        self.http.post(f"{where}/permissions/{role}", json=actions).raise_for_status()

    def revoke(self, role: str, where: str = NAMESPACE) -> None:
        self.http.delete(f"{where}/permissions/{role}").raise_for_status()

    def attached(self, topic: str) -> tuple[Sequence[Any], Sequence[Any]]:
        """The producers of a topic, and the consumers of its subscription `s`."""
        stats = self.http.get(f"/admin/v2/persistent/public/default/{topic}/stats").json()
        consumers = stats["subscriptions"].get("s", {"consumers": []})["consumers"]
        return stats["publishers"], consumers
