"""Damage in an entry log: what stands beside it is read, and how far it goes is known."""

import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.tests.contract_ledger_store import append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600)
COUNT = 60


def body(number: int, size: int) -> bytes:
    return b"<%d>" % number + bytes([number]) * size


@pytest.mark.parametrize("size", [50, 1000, 5_000, 40_000])
@pytest.mark.parametrize("rotten", [1, 100, 4096])
async def test_only_what_is_damaged_is_lost(tmp_path, size: int, rotten: int) -> None:
    """Of whatever size entries are: small in one read, large each by itself."""
    metadata = DictMetadata()
    async with open_embedded(tmp_path, metadata, SETTINGS, on_fatal=pytest.fail) as store:
        writer = await store.create({})
        await append(writer, *[body(number, size) for number in range(COUNT)])
        await writer.close()
    (path,) = (tmp_path / "ledgers/current").glob("*.log")
    data = bytearray(path.read_bytes())
    at = data.index(body(30, size)) + 10
    data[at : at + rotten] = bytes(byte ^ 0x55 for byte in data[at : at + rotten])
    path.write_bytes(data)
    damaged = [n for n in range(COUNT) if body(n, size) not in data or is_cut(data, n, size)]
    assert damaged[0] == 30
    async with open_embedded(tmp_path, metadata, SETTINGS, on_fatal=pytest.fail) as store:
        reader = await store.open(writer.ledger_id, recover=False)
        found: dict[int, bytes] = {}
        entry_id = 0
        while entry_id < COUNT:
            try:
                part = await reader.read(entry_id, COUNT - 1, 300_000)
            except Corrupted:
                first, last = await reader.damage(entry_id)
                assert [*range(first, last + 1)] == damaged
                entry_id = last + 1
            else:
                found |= enumerate(part, entry_id)
                entry_id += len(part)
        assert found == {n: body(n, size) for n in range(COUNT) if n not in damaged}
        for n in found:
            assert await reader.read(n, n, 1) == [body(n, size)]


def is_cut(data: bytes, number: int, size: int) -> bool:
    """Whether what stands before the payload has changed: length, ids, digest."""
    at = data.index(body(number, size)) - 40
    head = data[at : at + 20]
    ids = (0).to_bytes(8, "big") + number.to_bytes(8, "big")
    return head != (36 + len(body(number, size))).to_bytes(4, "big") + ids


async def test_a_ledger_that_ends_in_damage_is_closed_there(tmp_path) -> None:
    """With every entry that it had: to end it before would have them written twice."""
    metadata = DictMetadata()
    async with open_embedded(tmp_path, metadata, SETTINGS, on_fatal=pytest.fail) as store:
        writer = await store.create({})
        await append(writer, *[body(number, 100) for number in range(5)])
    (path,) = (tmp_path / "ledgers/current").glob("*.log")
    data = bytearray(path.read_bytes())
    at = data.index(body(3, 100)) + 5
    data[at : at + 150] = bytes(150)
    path.write_bytes(data)
    async with open_embedded(tmp_path, metadata, SETTINGS, on_fatal=pytest.fail) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert reader.last_confirmed == 4
        assert len(await reader.read(0, 4, 10_000)) == 3
        assert await reader.damage(4) == (3, 4)
