"""Configs of one name each, as ZooKeeper had them: `{"version":1,"config":{"key":"value"}}`.

Several kinds of configs may share a record, such as a user's credentials and quotas: each is
changed without a look at the others.

Invariant: a record is written over the version that it was read with; one without configs is
deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

USERS: Final = "/config/users"
"""Where users have records of their own."""
EVERYBODY: Final = "<default>"
"""In place of a name, for all that have no record."""
Configs = dict[str, str]


class ConfigRecord(Struct, frozen=True):
    """A record as stored."""

    version: int = 1
    config: Configs = {}


def quoted(name: str) -> str:
    """A name as one part of a path, which is neither `.` nor `..`."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def unquoted(part: str) -> str:
    """The name of a part of a path."""
    return unquote(part)


async def configs_at(metadata: MetadataStore, path: str) -> Configs:
    """The configs of a path; empty if it has none."""
    found = await metadata.get(path)
    if found is None or not found.value:
        return {}
    return msgspec.json.decode(found.value, type=ConfigRecord).config


async def change_configs(
    metadata: MetadataStore, path: str, changed: Callable[[Configs], Configs | None]
) -> bool:
    """Store what `changed` makes of the present configs. False if that is None, and then nothing
    changes. It may be called several times, since others may change the record meanwhile.
    """
    while True:
        found = await metadata.get(path)
        stored = found is not None and found.value
        before = msgspec.json.decode(stored, type=ConfigRecord).config if stored else {}
        wanted = changed(dict(before))
        if wanted is None:
            return False
        if wanted == before:
            return True
        try:
            if wanted:
                value = msgspec.json.encode(ConfigRecord(config=wanted))
                await metadata.put(path, value, ABSENT if found is None else found.version)
            elif found is not None:
                await metadata.delete(path, found.version)
        except (AlreadyExists, BadVersion, NotFound):
            continue  # another broker was faster: read again
        return True
