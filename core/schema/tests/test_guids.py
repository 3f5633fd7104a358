"""GUIDs lead to ids, and those of other registries to none."""

from __future__ import annotations

import uuid

import pytest

from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.schema.guids import ID_MAX, SchemaGuids


@pytest.mark.parametrize("schema_id", [1, 2, 1 << 40, ID_MAX])
async def test_there_and_back(schema_id: int) -> None:
    metadata = MemoryMetadata()
    guid = await SchemaGuids(metadata).of(schema_id)
    assert uuid.UUID(guid).version == 8
    assert uuid.UUID(guid).variant == uuid.RFC_4122
    later = SchemaGuids(metadata)
    assert await later.id_of(guid) == schema_id
    assert await later.of(schema_id) == guid


async def test_two_that_begin_at_a_time() -> None:
    metadata = MemoryMetadata()
    one, other = SchemaGuids(metadata), SchemaGuids(metadata)
    assert await one.of(7) == await other.of(7)


@pytest.mark.parametrize(
    "text", ["", "x", "0" * 32, "1fdddda0-ff1f-411c-b550-de866274e7e8", "1" * 33]
)
async def test_what_is_none_of_ours(text: str) -> None:
    guids = SchemaGuids(MemoryMetadata())
    await guids.of(1)
    assert await guids.id_of(text) is None


async def test_another_registry_gives_others() -> None:
    guid = await SchemaGuids(MemoryMetadata()).of(1)
    assert await SchemaGuids(MemoryMetadata()).id_of(guid) is None
