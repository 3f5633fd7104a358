"""RocksDB's errors in our words: above all, a damaged block is not an empty one."""

import random

import pytest

from magnetar.bookie.machine.rocksdb import RocksDatabases
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.ports.tests.contract_database import CHECKS

KEYS = [b"%06d" % number for number in range(20_000)]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "database"


def opened(directory, damaged=lambda sentence: None):
    return RocksDatabases(1 << 20).open(directory_at(directory), 1 << 20, damaged)


def filled(directory):
    database = opened(directory)
    batch = database.batch()
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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(directory, check):
    check(lambda: opened(directory))


def test_a_damaged_block_is_never_taken_for_one_without_keys(directory):
    filled(directory).close()
    rot(directory)
    sentences = []
    database = opened(directory, sentences.append)
    for question in (database.get, database.at_or_before):
        right, denied, damaged = outcomes(question, KEYS)
        assert right > 10_000
        assert denied == 0
        assert damaged > 0
    with pytest.raises(Corrupted, match="the index database"):
        list(database.from_key(b""))
    assert sentences
    database.close()


def test_what_cannot_be_opened_is_a_sentence(directory):
    filled(directory).close()
    (directory / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StorageFailed, match="the index database cannot be opened"):
        opened(directory)


def test_tables_that_were_merged_are_small(directory):
    """A large one is written again with each that overlaps, and its filter fills the cache."""
    database, chance = opened(directory), random.Random(7)
    for start in range(0, 200_000, 50_000):  # as of two ledgers that are written at once
        batch = database.batch()
        for number in range(start, start + 50_000):
            batch.put(b"%d %014d" % (number % 2, number), chance.randbytes(64))
        database.write(batch)
        database.flush()
    database.compact(b"0", b"2")
    sizes = [table.stat().st_size for table in directory.glob("*.sst")]
    database.close()
    assert len(sizes) > 2
    assert max(sizes) < 5 << 20, sizes
