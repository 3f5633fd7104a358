"""Leases and cookies of bookies; `test_embedded.py` has what a start says about them."""

import pytest

from magnetar.bookie.identification import EMBEDDED, registered
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import StorageFailed


async def test_one_bookie_of_an_id_runs():
    metadata = DictMetadata()
    async with registered(metadata, "b1", pytest.fail):
        assert await metadata.get(f"{EMBEDDED}/b1") is not None
        with pytest.raises(StorageFailed, match="b1 is running already"):
            async with registered(metadata, "b1", pytest.fail):
                pytest.fail("two run")
        async with registered(metadata, "b2", pytest.fail):
            pass
    assert await metadata.get(f"{EMBEDDED}/b1") is None
