"""RocksDB's errors in our words: above all, a damaged block is not an empty one."""

import pytest
from rocksdict import Cache, WriteBatch

from magnetar.bookie.server.index.database import Database
from magnetar.core.errors import Corrupted, StorageFailed

KEYS = [b"%06d" % number for number in range(20_000)]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "database"


def opened(directory):
    return Database(directory, Cache(1 << 20), 1 << 20)


def filled(directory):
    database = opened(directory)
    batch = WriteBatch(raw_mode=True)
    for key in KEYS:
        batch.put(key, key)
    database.write(batch)
    database.flush()
    return database


def rot(directory):
    """Change some bytes in the middle of every table."""
    for table in directory.glob("*.sst"):
        whole = bytearray(table.read_bytes())
        middle = len(whole) // 2
        whole[middle : middle + 40] = bytes(byte ^ 0xFF for byte in whole[middle : middle + 40])
        table.write_bytes(whole)


def outcomes(question, keys):
    """How many keys are answered with what they hold, denied, and said to be damaged."""
    counts = [0, 0, 0]
    for key in keys:
        try:
            counts[0 if question(key) in (key, (key, key)) else 1] += 1
        except Corrupted:
            counts[2] += 1
    return counts


def test_what_is_there_and_what_is_not(directory):
    database = filled(directory)
    assert database.get(KEYS[7]) == KEYS[7]
    assert database.get(b"x") is None
    assert database.at_or_before(b"000007x") == (KEYS[7], KEYS[7])
    assert database.at_or_before(b"/") is None
    assert [key for key, _ in database.from_key(KEYS[3])] == KEYS[3:]
    assert list(database.from_key(b"x")) == []
    database.delete(KEYS[0])
    database.delete_range(KEYS[3], KEYS[-1])
    assert [key for key, _ in database.from_key(b"")] == [KEYS[1], KEYS[2], KEYS[-1]]
    database.close()


def test_a_damaged_block_is_never_taken_for_one_without_keys(directory):
    filled(directory).close()
    rot(directory)
    database = opened(directory)
    for question in (database.get, database.at_or_before):
        right, denied, damaged = outcomes(question, KEYS)
        assert right > 10_000
        assert denied == 0
        assert damaged > 0
    with pytest.raises(Corrupted, match="the index database"):
        list(database.from_key(b""))
    database.close()


def test_what_cannot_be_opened_is_a_sentence(directory):
    filled(directory).close()
    (directory / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StorageFailed, match="the index database cannot be opened"):
        opened(directory)
