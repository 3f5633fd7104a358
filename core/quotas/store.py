"""Limits as stored, and what keeps those in force up to date.

    /config/users/{user}                    a user
    /config/users/{user}/clients/{client}   a client id of a user
    /config/clients/{client}                a client id
    /config/ips/{address}                   an address

A name is quoted, `<default>` is for all others: Kafka's form in ZooKeeper (`ZkData.scala` of 3.9,
KIP-55, KIP-612). The records may hold other configs, such as credentials.

Invariant: after `settled` the rules are those that were stored before the call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

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
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.quotas.limits import DEFAULT, QuotaEntity, QuotaKey
from magnetar.core.quotas.usage import QuotaUsage

CLIENTS: Final = "/config/clients"
ADDRESSES: Final = "/config/ips"
ROOTS: Final = (USERS, CLIENTS, ADDRESSES)
BELOW_USER: Final = "clients"


def _part(name: str) -> str:
    return EVERYBODY if name == DEFAULT else quoted(name)


def _name(part: str) -> str:
    return DEFAULT if part == EVERYBODY else unquoted(part)


def path_of(entity: QuotaEntity) -> str:
    """Where the limits of an entity are stored."""
    user, client, address = entity
    if address is not None:
        return f"{ADDRESSES}/{_part(address)}"
    if user is None:
        return f"{CLIENTS}/{_part(client or DEFAULT)}"
    below = "" if client is None else f"/{BELOW_USER}/{_part(client)}"
    return f"{USERS}/{_part(user)}{below}"


def entity_of(path: str) -> QuotaEntity | None:
    """The entity of a path; None if it is none."""
    match path.removeprefix("/config/").split("/"):
        case ["users", user]:
            return QuotaEntity(user=_name(user))
        case ["users", user, "clients", client]:
            return QuotaEntity(user=_name(user), client=_name(client))
        case ["clients", client]:
            return QuotaEntity(client=_name(client))
        case ["ips", address]:
            return QuotaEntity(address=_name(address))
    return None


def limits_in(configs: Configs) -> dict[QuotaKey, float]:
    """The limits among configs; what is no positive number limits nothing."""
    found = {}
    for key in QuotaKey:
        with suppress(KeyError, ValueError):
            value = float(configs[key])
            if 0 < value < math.inf:
                found[key] = value
    return found


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


async def change_limits(
    metadata: MetadataStore, entity: QuotaEntity, changes: Mapping[QuotaKey, float | None]
) -> None:
    """Store limits of an entity, and remove those that are None."""

    def changed(configs: Configs) -> Configs:
        for key, value in changes.items():
            if value is None:
                configs.pop(key, None)
            else:
                configs[key] = _text(value)
        return configs

    await change_configs(metadata, path_of(entity), changed)


class StoredQuotas:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, usage: QuotaUsage) -> None:
        self._metadata = metadata
        self._usage = usage
        self._paths = ChangedPaths("quotas", self._load, usage.changed, ROOTS)
        self.run, self.settled = self._paths.run, self._paths.settled

    async def open(self) -> None:
        """Load all limits, and watch them."""
        self._paths.follow(self._metadata, ROOTS)
        await self.settled()

    async def change(self, entity: QuotaEntity, changes: Mapping[QuotaKey, float | None]) -> None:
        """Store limits, and put them in force."""
        await change_limits(self._metadata, entity, changes)
        self._paths.note(path_of(entity))
        await self.settled()

    async def _load(self, path: str) -> bool:
        """Load what is stored at a path, and below it for one of the roots; whether it changed."""
        entity = entity_of(path)
        if entity is not None:
            limits = limits_in(await configs_at(self._metadata, path))
            return self._usage.rules.put(entity, limits)
        if path not in ROOTS:
            return False
        below = [f"{path}/{name}" for name in await self._metadata.children(path)]
        if path == USERS:
            for user in list(below):
                clients = f"{user}/{BELOW_USER}"
                below += [f"{clients}/{name}" for name in await self._metadata.children(clients)]
        known = [path_of(one) for one in self._usage.rules.by_entity]
        gone = [one for one in known if one.startswith(f"{path}/") and one not in set(below)]
        changed = False
        for each in (*below, *gone):
            changed |= await self._load(each)
        return changed
