"""A journal that is cut, gone or rotten: refused; after a repair all that can be had is there."""

import shutil
from pathlib import Path

import pytest
import trio

from magnetar.bookie.client.store import MASTER_KEY
from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.recovery import repair
from magnetar.bookie.recovery.tests.test_rebuild import SETTINGS, payloads, stored
from magnetar.bookie.server.directories import LAST_MARK, read_last_mark
from magnetar.bookie.server.journal import inventory
from magnetar.bookie.server.small_files import write_whole
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.bookie.tests.real_disk import directories_at
from magnetar.bookie.tests.test_rot import rot
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.tests.contract_ledger_store import append


@pytest.fixture
async def used(tmp_path):
    metadata = DictMetadata()
    closed, still_open = await stored(tmp_path / "source", metadata)
    return directories_at(tmp_path / "killed"), metadata, closed, still_open


def opened(directories, metadata):
    return open_embedded(directories.root.path, metadata, SETTINGS, on_fatal=pytest.fail)


def journals(directories, pattern="*.txn"):
    return list(Path(directories.journal.path).glob(pattern))


def newest(directories):
    return max(journals(directories))


def cut(directories):
    mark = read_last_mark(directories)
    newest(directories).write_bytes(newest(directories).read_bytes()[: mark.offset - 100])


def cut_behind_the_mark(directories):
    mark = read_last_mark(directories)
    newest(directories).write_bytes(newest(directories).read_bytes()[: mark.offset + 8])


def remove(directories):
    newest(directories).unlink()


def remove_mark(directories):
    directories.ledgers.remove(LAST_MARK)


def cut_mark(directories):
    write_whole(directories.ledgers, LAST_MARK, b"abc")


def spoil_header(directories):
    rot(newest(directories), 2)


DAMAGES = [cut, cut_behind_the_mark, remove, remove_mark, cut_mark, spoil_header]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_refused_then_repaired(used, damage):
    directories, metadata, closed, still_open = used
    assert repair.examine(directories) == repair.BookieFinding([], [])
    damage(directories)
    before = {path: path.read_bytes() for path in journals(directories)}
    with pytest.raises(Corrupted):
        async with opened(directories, metadata):
            raise AssertionError
    found = repair.examine(directories)
    assert found.troubles
    assert before == {path: path.read_bytes() for path in journals(directories)}
    repair.accept(directories, found, MASTER_KEY, 1)
    assert not repair.examine(directories).troubles
    for _ in range(2):
        async with opened(directories, metadata) as store:
            reader = await store.open(closed, recover=True)
            assert await reader.read(0, 299, 1 << 30) == payloads(closed)
            reader = await store.open(still_open, recover=True)
            expected = payloads(still_open)
            if damage not in (cut, cut_behind_the_mark, remove):
                expected.append(b"in the journal only")
            assert await reader.read(0, 300, 1 << 30) == expected
            assert reader.last_confirmed == len(expected) - 1


async def test_only_what_is_damaged_in_a_journal_is_lost(tmp_path):
    """The last groups, which no checkpoint has seen, with one of them rotten, and the header."""
    metadata = DictMetadata()
    async with opened(directories_at(tmp_path / "source"), metadata) as store:
        writer = await store.create({})
        for i in range(10):
            await append(writer, b"%d" % i * 20)
        shutil.copytree(tmp_path / "source", tmp_path / "killed")
    directories = directories_at(tmp_path / "killed")
    kept = newest(directories).read_bytes()
    at = kept.index(b"4" * 20) - 40
    damaged = b"rot" + kept[3:at] + b"\xff" * 2 + kept[at + 2 :]
    newest(directories).write_bytes(damaged)
    repair.accept(directories, repair.examine(directories), MASTER_KEY, 1)
    assert newest(directories).with_suffix(".txn.damaged").read_bytes() == damaged
    async with opened(directories, metadata) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        for i in (0, 1, 2, 3, 5, 6, 7, 8, 9):
            assert await reader.read(i, i, 100) == [b"%d" % i * 20]
        with pytest.raises(Corrupted, match="lost"):
            await reader.read(4, 4, 100)


def test_a_journal_made_anew_is_one(tmp_path):
    data = repair._journal([], MASTER_KEY)
    assert journal_format.read_header(data)
    assert len(data) % journal_format.ALIGNMENT_BYTES == 0


async def test_a_journal_between_two_is_missed(used):
    """lastMark does not name it: the inventory does."""
    directories, metadata, _, _ = used
    mark = read_last_mark(directories)
    inventory.write(directories.journal, {mark.journal_id: 512, mark.journal_id + 1: 512})
    with pytest.raises(Corrupted, match="is missing"):
        async with opened(directories, metadata):
            raise AssertionError
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("killed_at", ["wear.note", "write_last_mark", "_keep", "write_whole"])
async def test_a_repair_that_is_cut_short_is_begun_again(used, killed_at, monkeypatch):
    """And what was found at first is kept, not what the first attempt made of it."""
    directories, metadata, closed, _ = used
    mark = read_last_mark(directories)
    damaged = newest(directories).read_bytes()[: mark.offset // 8]
    newest(directories).write_bytes(damaged)

    class Killed(Exception):
        pass

    module = repair.wear if killed_at == "wear.note" else repair
    working = getattr(module, killed_at.rpartition(".")[2])

    def killed(*given):
        working(*given)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, working.__name__, killed)
        with pytest.raises(Killed):
            repair.accept(directories, repair.examine(directories), MASTER_KEY, 1)
    repair.accept(directories, repair.examine(directories), MASTER_KEY, 1)
    assert damaged in [path.read_bytes() for path in journals(directories, "*.txn*")]
    async with opened(directories, metadata) as store:
        reader = await store.open(closed, recover=True)
        assert await reader.read(0, 299, 1 << 30) == payloads(closed)
