"""The nodes that lead to others, and that nothing needs any more when those are gone.

Our store removes them itself. Those that Apache's clients have made have empty values, though, and
are deleted here.
"""

from __future__ import annotations

from contextlib import suppress

from magnetar.core.kernel.errors import BadVersion, NotFound
from magnetar.core.ports.metadata_store import MetadataStore


async def remove_empty_levels(store: MetadataStore, path: str, root: str) -> None:
    """Remove what led to a path below `root`, as far as it leads to nothing any more."""
    while (path := path.rpartition("/")[0]) != root:
        if await store.children(path):
            return
        found = await store.get(path)
        if found is not None:
            with suppress(BadVersion, NotFound):
                await store.delete(path, found.version)
