"""Metadata for tests: writes and deletions whatever is there, as an operator's hand may do them.

The port itself has none: every write of the server states the version that it expects.
"""

from __future__ import annotations

from magnetar.core.ports.metadata_store import ABSENT, MetadataStore


async def overwrite(store: MetadataStore, path: str, value: bytes) -> int:
    """Write a value over whatever is there; returns its version."""
    found = await store.get(path)
    return await store.put(path, value, ABSENT if found is None else found.version)


async def remove(store: MetadataStore, path: str) -> None:
    """Delete a value, whatever it is; `NotFound` if there is none."""
    found = await store.get(path)
    await store.delete(path, 0 if found is None else found.version)


def ignore_loss() -> None:
    """For a lease that is never lost, or of which nobody wants to hear."""
