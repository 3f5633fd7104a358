"""Users of SCRAM over HTTP: what is stored is what Kafka's API shows, and only if it is valid."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from magnetar.core.security.scram import credential_of
from magnetar.core.security.scram_store import credentials_of
from magnetar.wire.http.tests.visitor import Visitor

USERS = "/admin/v2/scram"
MADE = credential_of("SCRAM-SHA-256", b"salted", b"saltsalt", 4096)


def body(**other: Any) -> dict[str, Any]:
    texts = {
        "salt": MADE.salt,
        "storedKey": MADE.stored_key,
        "serverKey": MADE.server_key,
    }
    found = {name: base64.b64encode(raw).decode() for name, raw in texts.items()}
    return {**found, "iterations": MADE.iterations, **other}


async def test_users_come_and_go(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{USERS}/a%2Fb%20c/SCRAM-SHA-256", body())
    assert await visitor.get(USERS) == {"a/b c": ["SCRAM-SHA-256"]}
    assert await credentials_of(visitor.broker.metadata, "a/b c") == {"SCRAM-SHA-256": MADE}
    await visitor.fails(404, "DELETE", f"{USERS}/a%2Fb%20c/SCRAM-SHA-512")
    await visitor.does("DELETE", f"{USERS}/a%2Fb%20c/SCRAM-SHA-256")
    assert await visitor.get(USERS) == {}


@pytest.mark.parametrize(
    ("path", "given", "sentence"),
    [
        ("ali/PLAIN", body(), "there is no mechanism PLAIN"),
        ("%20/SCRAM-SHA-256", body(), "' ' is no name of a user"),
        ("ali/SCRAM-SHA-512", body(), "storedKey has 32 bytes, not 64 to 64"),
        ("ali/SCRAM-SHA-256", body(iterations=1), "iterations are from 4096 to 16384"),
        ("ali/SCRAM-SHA-256", body(salt="eA=="), "salt has 1 bytes, not 8 to 256"),
        ("ali/SCRAM-SHA-256", body(salt="no"), "salt is not base64"),
        ("ali/SCRAM-SHA-256", {}, "iterations are"),
    ],
)
async def test_what_is_no_credential(
    visitor: Visitor, path: str, given: dict[str, Any], sentence: str
) -> None:
    assert sentence in await visitor.fails(400, "PUT", f"{USERS}/{path}", given)
    assert await visitor.get(USERS) == {}
