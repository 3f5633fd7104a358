"""Groups that have committed something: what is stored of each, beside its offsets.

Offsets themselves are cursors of their topics. A record says what is not in them: of which protocol
the group is, and since when nobody is in it, from which its offsets begin to age.

Invariant: a group has a record before anything is committed, and until all that was is deleted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio
from msgspec import Struct

from core.errors import NotFound
from core.ports.metadata_store import MetadataStore

GROUPS: Final = "/magnetar/kafka/groups"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class Record(Struct, frozen=True, omit_defaults=True):
    """See the module's docstring."""

    kind: str = CLASSIC
    protocol_type: str = ""
    """Empty as long as nobody has ever joined, only committed."""
    empty_since_ms: int = 0
    """0 while somebody is in."""
    ages_early: bool = False
    """A client has said itself how long an offset is to be kept."""


_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Record).decode


class Records:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._known: dict[str, Record] = {}
        self._lock = trio.Lock()

    async def names(self) -> list[str]:
        """Everybody who has committed something."""
        return sorted(unquote(name) for name in await self._metadata.children(GROUPS))

    async def find(self, group: str) -> Record | None:
        known = self._known.get(group)
        if known is not None:
            return known
        found = await self._metadata.get(_path(group))
        return None if found is None else _decode(found.value)

    async def ensure(self, group: str, first: Record) -> None:
        """There is a record when this returns: `first`, if there was none."""
        if group in self._known and not first.ages_early:
            return
        async with self._lock:
            found = await self.find(group)
            if found is None:
                await self._put(group, first)
            elif first.ages_early and not found.ages_early:
                await self._put(group, msgspec.structs.replace(found, ages_early=True))
            else:
                self._known[group] = found

    async def note(self, group: str, kind: str, protocol_type: str, empty_since_ms: int) -> None:
        """Somebody is in (0), or nobody any more; a group without a record gets none."""
        async with self._lock:
            found = await self.find(group)
            if found is None:
                return
            noted = msgspec.structs.replace(
                found, kind=kind, protocol_type=protocol_type, empty_since_ms=empty_since_ms
            )
            if noted != found:
                await self._put(group, noted)

    async def delete(self, group: str) -> None:
        """Whoever asks for one from now on writes it anew."""
        self._known.pop(group, None)
        async with self._lock:
            self._known.pop(group, None)
            with suppress(NotFound):  # it never had one
                await self._metadata.delete(_path(group))

    async def _put(self, group: str, record: Record) -> None:
        self._known.pop(group, None)
        await self._metadata.put(_path(group), _encode(record))
        self._known[group] = record


def _path(group: str) -> str:
    return f"{GROUPS}/{quote(group, safe='')}"
