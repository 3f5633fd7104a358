"""A document that is fetched."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import rsa

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import TOKEN
from magnetar.operator_error import OperatorError
from magnetar.security import remote
from magnetar.security.remote import check_way, is_remote, without_password
from magnetar.security.tests.test_access import opened, prove


def test_what_is_fetched() -> None:
    assert is_remote("https://issuer/keys")
    assert not is_remote("/keys")
    assert not is_remote("file:///keys")
    assert not is_remote("data:,x")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "[::1]:1", "localhost"])
def test_without_tls_only_from_this_machine(host: str) -> None:
    check_way("security.token_jwks", f"http://{host}/keys")
    for url in ("http://keys/", "http://user:hunter2@10.0.0.1/", "http://127.0.0.1.evil/", "http:"):
        with pytest.raises(OperatorError, match="has to be https") as found:
            check_way("security.token_jwks", url)
        assert "hunter2" not in str(found.value)
    with pytest.raises(OperatorError):
        opened(token_jwks="http://issuer.invalid/keys")


def test_a_password_in_a_url_is_not_shown() -> None:
    assert without_password("https://user:hunter2@keys:1/a?b") == "https://keys:1/a?b"


async def test_a_document_from_a_url(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is fetched at the start, and again when a token names a key that it does not have."""
    private = rsa.generate_private_key(65537, 2048)
    entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key()))
    served: list[bytes] = []

    def fetch(self: remote.RemoteDocument) -> bytes:
        if not served:
            raise OSError("no route")
        return served[0]

    monkeypatch.setattr(remote.RemoteDocument, "_fetch", fetch)
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    guarded = opened(token_jwks="https://issuer.invalid/keys")
    token = jwt.encode({"sub": "bob"}, private, "RS256", headers={"kid": "2"}).encode()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(guarded.run)
        await trio.sleep(1)
        with pytest.raises(Unauthenticated):
            await prove(guarded.access, TOKEN, token)
        served.append(json.dumps({"keys": [{**entry, "kid": "1"}]}).encode())
        await trio.sleep(remote.FETCH_SOONER_SECONDS * 2)
        served[0] = json.dumps({"keys": [{**entry, "kid": "2"}]}).encode()
        with pytest.raises(Unauthenticated, match="not known here"):
            await prove(guarded.access, TOKEN, token)
        await trio.sleep(remote.FETCH_SOONER_SECONDS * 2)
        assert await prove(guarded.access, TOKEN, token) == "bob"
        nursery.cancel_scope.cancel()


async def at_once(call: Any, *_args: Any, **_options: Any) -> Any:
    return call()
