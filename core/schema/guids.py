"""GUIDs of schemas: names that no other registry gives, which clients write in headers of records.

    8 bytes     of this registry: made by chance when the first one is asked for, and stored
    8 bytes     the id of the schema

So a GUID leads to its schema without an index, also for schemas from before there were any. The
bits of version and variant are those of RFC 9562 for a form of one's own (version 8). Registries
elsewhere derive it from the definition: the same schema has another GUID there.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Final

from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

REGISTRY: Final = "/magnetar/schema-registry"
"""The first half of all GUIDs, as 16 hexadecimal digits."""
HALF: Final = 64
VERSION_MASK: Final = 0xF000
VERSION: Final = 0x8000
VARIANT: Final = 0b10 << 62
ID_MAX: Final = (1 << 62) - 1


class SchemaGuids:
    """See the module's docstring. A record that is there never changes."""

    __slots__ = ("_first_half", "_metadata")

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._first_half: int | None = None

    async def of(self, schema_id: int) -> str:
        """The GUID of a schema."""
        return str(uuid.UUID(int=await self._registry() << HALF | VARIANT | schema_id))

    async def id_of(self, text: str) -> int | None:
        """The id of the schema with that GUID; None if this registry gives no such one."""
        try:
            number = uuid.UUID(text).int
        except ValueError:
            return None
        if number >> HALF != await self._registry() or number & 0b11 << 62 != VARIANT:
            return None
        return number & ID_MAX

    async def _registry(self) -> int:
        if self._first_half is None:
            stored = await self._metadata.get(REGISTRY)
            if stored is None:
                made = uuid.uuid4().int >> HALF & ~VERSION_MASK | VERSION
                with suppress(AlreadyExists):  # another broker was first
                    await self._metadata.put(REGISTRY, f"{made:016x}".encode(), ABSENT)
                stored = await self._metadata.get(REGISTRY)
            assert stored is not None, "it is never deleted"
            self._first_half = int(stored.value, 16)
        return self._first_half
