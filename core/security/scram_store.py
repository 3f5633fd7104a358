"""SCRAM's credentials as stored, and the mechanisms that look there.

    /config/users/{name}    {"version":1,"config":{"SCRAM-SHA-512":"salt=...,stored_key=...,
                            server_key=...,iterations=8192"}}
    /scram-secret           what the salts of unknown names are made of, for all brokers

The first is Kafka's form in ZooKeeper (`ScramCredentialUtils.java` and `ZkData.scala` of 3.9).
Salts and keys are base64, names quoted. Records are shared with other configs of their users
(`core/metadata/config_records.py`).
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from magnetar.core.kernel.errors import AlreadyExists, BadVersion
from magnetar.core.metadata.changed_paths import ChangedPaths
from magnetar.core.metadata.config_records import (
    EVERYBODY,
    USERS,
    Configs,
    change_configs,
    configs_at,
    quoted,
    unquoted,
)
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.security.conversation import AuthPeer, Mechanism, claiming
from magnetar.core.security.identity import Identity
from magnetar.core.security.live import LiveSessions
from magnetar.core.security.scram import HASHES, Credential, ScramExchange, stand_in

SECRET: Final = "/scram-secret"
NONCE_BYTES: Final = 24


def _path(name: str) -> str:
    return f"{USERS}/{quoted(name)}"


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
    configs = await configs_at(metadata, _path(name))
    return {each: _credential(configs[each]) for each in HASHES if each in configs}


async def scram_users(metadata: MetadataStore) -> list[str]:
    """All users with a record, in order; some may have no credential."""
    return sorted([unquoted(name) for name in await metadata.children(USERS) if name != EVERYBODY])


async def change_credentials(
    metadata: MetadataStore, name: str, changes: Mapping[str, Credential | None]
) -> bool:
    """Store credentials of a user by mechanism, and remove those that are None; False if one to
    remove is not there, and then nothing changes.
    """

    def changed(configs: Configs) -> Configs | None:
        for mechanism, credential in changes.items():
            if credential is not None:
                configs[mechanism] = _text(credential)
            elif configs.pop(mechanism, None) is None:
                return None
        return configs

    return await change_configs(metadata, _path(name), changed)


class ScramWatch:
    """Ends the sessions of users whose credential is gone, whichever broker has removed it."""

    def __init__(self, metadata: MetadataStore, live: LiveSessions) -> None:
        self._metadata = metadata
        self._live = live
        self._paths = ChangedPaths("users of SCRAM", self._load)
        self._paths.follow(metadata, [USERS])
        self.run = self._paths.run

    async def _load(self, path: str) -> bool:
        name = path.removeprefix(USERS).strip("/")
        if "/" not in name:  # what is below a user are limits of its clients
            for each in [unquoted(name)] if name else sorted(self._live.names(HASHES)):
                await self._look(each)
        return False

    async def _look(self, name: str) -> None:
        found = await credentials_of(self._metadata, name)
        for mechanism in HASHES:
            if mechanism not in found:
                self._live.gone(mechanism, [name])


class ScramConversation:
    """The exchange of one client."""

    refusal = ""

    def __init__(self, metadata: MetadataStore, mechanism: str) -> None:
        self.identity: Identity | None = None
        self._metadata = metadata
        self._mechanism = mechanism
        self._exchange = ScramExchange(mechanism, secrets.token_urlsafe(NONCE_BYTES))
        self._name: str | None = None

    async def respond(self, said: bytes) -> bytes:
        if self._name is not None:
            with claiming(self._name):
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
