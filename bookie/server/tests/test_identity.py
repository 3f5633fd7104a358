"""Whose directory it is: new, ours, somebody else's, or half of it lost."""

import pytest

from magnetar.bookie.format import cookie
from magnetar.bookie.server import identity
from magnetar.bookie.server.directories import make_directories
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.bookie.tests.real_disk import directories_at, directory_at
from magnetar.core.kernel.errors import StorageFailed

OURS = cookie.of_directories("embedded", "journal", ["ledgers"], "0b2c")


@pytest.fixture
def directories(tmp_path):
    return directories_at(tmp_path)


def test_a_new_directory_gets_the_cookie_in_both_places(directories):
    assert identity.is_empty(directories)
    identity.check(directories, OURS)
    for place in (directories.journal, directories.ledgers):
        assert cookie.decode(read_whole(place, cookie.VERSION_FILE).decode()) == OURS
    assert not identity.is_empty(directories)
    identity.check(directories, OURS)


def test_another_bookies_directory_is_refused(directories):
    identity.check(directories, cookie.of_directories("embedded", "journal", ["ledgers"], "other"))
    with pytest.raises(
        StorageFailed,
        match="another bookie, embedded in the cluster other; this one is embedded in the cluster",
    ):
        identity.check(directories, OURS)


def test_files_without_a_cookie_are_refused(directories):
    write_whole(directories.ledgers, "0.log", b"x")
    assert not identity.is_empty(directories)
    with pytest.raises(StorageFailed, match="no cookie"):
        identity.check(directories, OURS)


@pytest.mark.parametrize("place", ["journal", "ledgers"])
def test_half_of_the_cookies_lost_is_a_disk_that_is_missing(directories, place):
    identity.check(directories, OURS)
    write_whole(directories.ledgers, "lastMark", bytes(16))
    getattr(directories, place).remove(cookie.VERSION_FILE)
    with pytest.raises(StorageFailed, match="lost its cookie"):
        identity.check(directories, OURS)


@pytest.mark.parametrize("emptied", [0, 1, 2])
def test_an_emptied_one_of_several_ledger_directories_is_named(tmp_path, emptied):
    several = [directory_at(tmp_path / name) for name in "abc"]
    directories = make_directories(directory_at(tmp_path), None, several)
    ours = cookie.of_directories("embedded", *directories.names, "0b2c")
    identity.check(directories, ours)
    write_whole(directories.journal, "1.txn", b"x")
    identity.check(directories, ours)
    directories.all_ledgers[emptied].remove(cookie.VERSION_FILE)
    with pytest.raises(StorageFailed, match=f"/{'abc'[emptied]}/current has lost its cookie"):
        identity.check(directories, ours)


def test_other_directories_than_before_are_refused(tmp_path):
    several = [directory_at(tmp_path / name) for name in "ab"]
    one = make_directories(directory_at(tmp_path), None, several[:1])
    identity.check(one, cookie.of_directories("embedded", *one.names, "0b2c"))
    two = make_directories(directory_at(tmp_path), None, several)
    with pytest.raises(StorageFailed, match=r"other directories: journal, a; .*--allow-storage"):
        identity.check(two, cookie.of_directories("embedded", *two.names, "0b2c"))


def test_a_first_start_that_was_cut_short_between_the_cookies_goes_on(directories):
    identity.check(directories, OURS)
    directories.journal.remove(cookie.VERSION_FILE)
    identity.check(directories, OURS)
    assert cookie.VERSION_FILE in directories.journal.names()


def test_a_damaged_cookie_is_refused_with_a_word_on_the_other(directories):
    identity.check(directories, OURS)
    write_whole(directories.journal, cookie.VERSION_FILE, b"nonsense")
    with pytest.raises(StorageFailed, match="copy VERSION from"):
        identity.check(directories, OURS)
