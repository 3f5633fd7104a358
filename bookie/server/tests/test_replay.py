"""What a start says of a journal that is not what was written."""

import logging
import shutil

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.tests.contract_ledger_store import append


def opened(directory, metadata):
    return open_embedded(directory, metadata, BookieSettings(), on_fatal=print)


async def test_a_hole_in_a_journal_is_told(tmp_path, caplog):
    metadata = DictMetadata()
    async with opened(tmp_path / "bookie", metadata) as store:
        writer = await store.create({})
        for _ in range(3):
            await append(writer, b"x" * 1000)
        for name in ("whole", "holed"):
            shutil.copytree(tmp_path / "bookie", tmp_path / name)
    journals = sorted((tmp_path / "holed" / "journal" / "current").glob("*.txn"))
    with journals[-1].open("r+b") as file:
        file.seek(512)
        file.write(bytes(512))
    caplog.set_level(logging.WARNING, "magnetar.bookie.server.replay")
    async with opened(tmp_path / "whole", metadata):
        assert not caplog.messages
    async with opened(tmp_path / "holed", metadata):
        (results,) = caplog.messages
        assert f"{journals[-1]}: read up to 512" in results
