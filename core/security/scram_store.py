"""SCRAM's credentials as stored, and the mechanisms that look there.

    /config/users/{name}    {"version":1,"config":{"SCRAM-SHA-512":"salt=...,stored_key=...,
                            server_key=...,iterations=8192"}}
    /scram-secret           what the salts of unknown names are made of, for all brokers

The first is Kafka's form in ZooKeeper (`ScramCredentialUtils.java` and `ZkData.scala` of 3.9);
other configs of a user stay as they are. Salts and keys are base64, names quoted.

Invariant: a record is written over the version that it was read with.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.security.conversation import AuthPeer, Mechanism
from magnetar.core.security.identity import Identity
from magnetar.core.security.scram import HASHES, Credential, ScramExchange, stand_in

USERS: Final = "/config/users"
SECRET: Final = "/scram-secret"
NONCE_BYTES: Final = 24


class _UserRecord(Struct, frozen=True):
    version: int = 1
    config: dict[str, str] = {}


def _path(name: str) -> str:
    """The record of a user; a name of dots is no part of a path."""
    return f"{USERS}/{quote(name, safe='') if name.strip('.') else name.replace('.', '%2E')}"


def _text(credential: Credential) -> str:
    salt, stored, server = (
        base64.b64encode(each).decode()
        for each in (credential.salt, credential.stored_key, credential.server_key)
    )
    iterations = credential.iterations
    return f"salt={salt},stored_key={stored},server_key={server},iterations={iterations}"


def _credential(text: str) -> Credential:
    fields = dict(part.split("=", 1) for part in text.split(","))
    salt, stored, server = (
        base64.b64decode(fields[name]) for name in ("salt", "stored_key", "server_key")
    )
    return Credential(salt, stored, server, int(fields["iterations"]))


async def credentials_of(metadata: MetadataStore, name: str) -> dict[str, Credential]:
    """The credentials of a user by mechanism; empty if there are none."""
    found = await metadata.get(_path(name))
    if found is None:
        return {}
    config = msgspec.json.decode(found.value, type=_UserRecord).config
    return {each: _credential(config[each]) for each in HASHES if each in config}


async def scram_users(metadata: MetadataStore) -> list[str]:
    """All users with a record, in order; some may have no credential."""
    return sorted([unquote(name) for name in await metadata.children(USERS)])


async def change_credentials(
    metadata: MetadataStore, name: str, changes: Mapping[str, Credential | None]
) -> bool:
    """Store credentials of a user by mechanism, and remove those that are None; False if one to
    remove is not there, and then nothing changes.
    """
    while True:
        found = await metadata.get(_path(name))
        config = {} if found is None else msgspec.json.decode(found.value, type=_UserRecord).config
        for mechanism, credential in changes.items():
            if credential is not None:
                config[mechanism] = _text(credential)
            elif config.pop(mechanism, None) is None:
                return False
        try:
            if config:
                value = msgspec.json.encode(_UserRecord(config=config))
                await metadata.put(_path(name), value, ABSENT if found is None else found.version)
            elif found is not None:
                await metadata.delete(_path(name), found.version)
        except (AlreadyExists, BadVersion, NotFound):
            continue  # another broker was faster: read again
        return True


class ScramConversation:
    """The exchange of one client."""

    def __init__(self, metadata: MetadataStore, mechanism: str) -> None:
        self.identity: Identity | None = None
        self._metadata = metadata
        self._mechanism = mechanism
        self._exchange = ScramExchange(mechanism, secrets.token_urlsafe(NONCE_BYTES))
        self._name: str | None = None

    async def respond(self, said: bytes) -> bytes:
        if self._name is not None:
            proof = self._exchange.final(said)
            self.identity = Identity(self._name, (self._name,), self._mechanism)
            return proof
        name = self._exchange.first(said)
        stored = (await credentials_of(self._metadata, name)).get(self._mechanism)
        substitute = stand_in(self._mechanism, name, await _secret(self._metadata))
        self._name = name
        return self._exchange.challenge(stored or substitute)


async def _secret(metadata: MetadataStore) -> bytes:
    """What the salts of unknown names are made of, made by the first broker that needs it."""
    while (found := await metadata.get(SECRET)) is None:
        with suppress(AlreadyExists, BadVersion):  # another broker was faster
            await metadata.put(SECRET, secrets.token_bytes(32), ABSENT)
    return found.value


def scram_mechanisms(metadata: MetadataStore) -> dict[str, Mechanism]:
    """SCRAM-SHA-256 and SCRAM-SHA-512 with the credentials in a metadata store."""

    def begin(mechanism: str, _peer: AuthPeer) -> ScramConversation:
        return ScramConversation(metadata, mechanism)

    return {mechanism: partial(begin, mechanism) for mechanism in HASHES}
