"""The fake keeps the contract of the port, on a disk that loses power."""

import random

import pytest

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.tests.contract_database import CHECKS, fill
from magnetar.core.testing.memory_database import FILE, MemoryDatabases
from magnetar.core.testing.memory_disk import MemoryDisk


def opened(disk):
    return MemoryDatabases().open(disk.directory("/index"), 1 << 20, pytest.fail)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    disk = MemoryDisk()
    check(lambda: opened(disk))


@pytest.mark.parametrize("seed", range(5))
def test_what_was_flushed_survives_and_nothing_else(seed):
    disk = MemoryDisk()
    database = opened(disk)
    fill(database, [b"a"])
    database.flush()
    flushed = disk.steps
    fill(database, [b"b"])
    database.flush()
    for step, cut in disk.cuts(random.Random(seed).randrange):
        found = [key for key, _ in opened(cut).from_key(b"")]
        assert found in ([], [b"a"], [b"a", b"b"])
        assert step < flushed or found
    assert found == [b"a", b"b"]


def test_rot_is_noticed():
    disk = MemoryDisk()
    database = opened(disk)
    fill(database, [b"a"])
    database.flush()
    disk.rot(f"/index/{FILE}", 20)
    with pytest.raises(Corrupted):
        opened(disk)
