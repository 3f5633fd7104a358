"""Metadata for tests: unconditional writes and deletions, as an operator may make them.

The port itself has none: every write of the server states the version that it expects.
"""

from __future__ import annotations

from magnetar.core.ports.metadata_store import ABSENT, MetadataStore


async def overwrite(store: MetadataStore, path: str, value: bytes) -> int:
    """Write a value unconditionally and return its version."""
    found = await store.get(path)
    return await store.put(path, value, ABSENT if found is None else found.version)


async def remove(store: MetadataStore, path: str) -> None:
    """Delete a value unconditionally; `NotFound` if there is none."""
    found = await store.get(path)
    await store.delete(path, 0 if found is None else found.version)


def ignore_loss() -> None:
    """The callback for a lease whose loss is of no interest."""
