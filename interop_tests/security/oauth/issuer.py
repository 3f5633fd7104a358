"""A real issuer of tokens: npm's `oidc-provider`, which `issuer.js` begins and rotates."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from interop_tests import npm
from interop_tests.driver import Driver

HERE = Path(__file__).parent
AUDIENCE = "urn:magnetar"
SECRET = "a-secret-of-more-than-thirty-two-bytes-"


class RegisteredClient(Struct, frozen=True):
    """A client that the issuer knows."""

    name: str
    method: str = "post"
    """How it says its secret, which each client library has chosen: `post` or `basic`."""
    seconds: int = 600
    """How long its tokens live."""
    audience: str | None = None
    """For whom its tokens are; otherwise for whom it asks."""

    @property
    def secret(self) -> str:
        return SECRET + self.name


class Issuer:
    """One issuer, at a URL."""

    def __init__(self, driver: Driver, clients: Sequence[RegisteredClient]) -> None:
        self._driver = driver
        self._clients = [
            {
                "id": each.name,
                "secret": each.secret,
                "method": each.method,
                "seconds": each.seconds,
                "audience": each.audience,
            }
            for each in clients
        ]
        self.url: str = driver.play("begin", "", "", **self._keys("RS256", "first"))

    def _keys(self, algorithm: str, key_id: str) -> Mapping[str, Any]:
        return {"clients": self._clients, "alg": algorithm, "kid": key_id}

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def rotate(self, algorithm: str, key_id: str) -> None:
        """From now on it has another key, and the one before is gone."""
        self._driver.play("rotate", self.url, "", **self._keys(algorithm, key_id))

    def token(self, name: str) -> str:
        """One for a client that says its secret in the form."""
        said = {"client_id": name, "client_secret": RegisteredClient(name).secret}
        answer = httpx.post(self.token_url, data={"grant_type": "client_credentials", **said})
        found: str = answer.raise_for_status().json()["access_token"]
        return found

    def asked(self) -> int:
        """How often it was asked for tokens."""
        found: int = self._driver.play("asked", self.url, "")
        return found

    def credentials(self, folder: Path, name: str, secret: str | None = None) -> str:
        """The URL of a file with what a client says to the issuer, as Pulsar's clients read it."""
        file = folder / f"{name}.json"
        known = {
            "type": "client_credentials",
            "client_id": name,
            "client_secret": RegisteredClient(name).secret if secret is None else secret,
            "client_email": f"{name}@example.com",
            "issuer_url": self.url,
        }
        file.write_text(json.dumps(known))
        file.chmod(0o600)
        return file.as_uri()


@contextmanager
def issuing(folder: Path, *clients: RegisteredClient) -> Iterator[Issuer]:
    """An issuer for these, until the block ends."""
    with npm.driver(HERE, "issuer.js", folder / "issuer.log") as driver:
        yield Issuer(driver, clients)
