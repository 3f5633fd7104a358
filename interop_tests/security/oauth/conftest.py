"""A server that takes tokens of an issuer, whose keys it fetches."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from interop_tests.security.pulsar_people import Administrator
from interop_tests.waiting import until
from magnetar import Standalone, standalone

from .issuer import AUDIENCE, Issuer, RegisteredClient, issuing

ELSEWHERE = "urn:elsewhere"
KEYS_SECONDS = 15
"""Two fetches of the keys are 10 s apart at least."""
KNOWN = (
    RegisteredClient("root"),
    RegisteredClient("alice"),
    RegisteredClient("stranger"),
    RegisteredClient("brief", seconds=3),
    RegisteredClient("carol", "basic"),
    RegisteredClient("hasty", "basic", seconds=5),
    RegisteredClient("lost", "basic", audience=ELSEWHERE),
)


def accepted(server: Standalone, proof: str) -> None:
    """Wait until the server has the key that a token is signed with."""
    headers = {"authorization": f"Bearer {proof}"}
    admin = f"{server.http_url}/admin/v2/clusters"
    until(lambda: httpx.get(admin, headers=headers).status_code == 200, seconds=KEYS_SECONDS)


@contextmanager
def trusting(issuer: Issuer) -> Iterator[Standalone]:
    """A server that takes the issuer's tokens, if they are for it."""
    security = {
        "token_jwks": f"{issuer.url}/jwks",
        "token_issuer": issuer.url,
        "token_audience": AUDIENCE,
        "superusers": ["root"],
    }
    with standalone(security=security) as server:
        accepted(server, issuer.token("root"))
        yield server


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with issuing(tmp_path_factory.mktemp("issuer"), *KNOWN) as made:
        yield made


@pytest.fixture(scope="session")
def server(issuer: Issuer) -> Iterator[Standalone]:
    with trusting(issuer) as made:
        yield made


@pytest.fixture(scope="session")
def administrator(issuer: Issuer, server: Standalone) -> Iterator[Administrator]:
    made = Administrator(server, issuer.token("root"))
    yield made
    made.http.close()
