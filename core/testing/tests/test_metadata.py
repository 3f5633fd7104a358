"""An operator's hand, in tests."""

import pytest

from magnetar.core.kernel.errors import NotFound
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.testing.metadata import overwrite, remove


async def test_whatever_is_there_is_written_over_and_removed() -> None:
    store = MemoryMetadata()
    assert await overwrite(store, "/a", b"1") == 0
    assert await overwrite(store, "/a", b"2") == 1
    assert await store.get("/a") == Versioned(b"2", 1)
    await remove(store, "/a")
    assert await store.get("/a") is None
    with pytest.raises(NotFound):
        await remove(store, "/a")
