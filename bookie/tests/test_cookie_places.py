"""Cookies found, written and taken back; `test_membership.py` has what a start makes of them."""

import pytest

from magnetar.bookie import cookie_places
from magnetar.bookie.format import cookie
from magnetar.bookie.server.directories import make_directories
from magnetar.bookie.server.small_files import write_whole
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture
def directories():
    disk = MemoryDisk()
    others = [disk.directory(path) for path in ("/a", "/b")]
    return make_directories(disk.directory("/bookie"), None, others)


def cookies(directories):
    return [found.described.cookie for found in cookie_places.found_in(directories)]


def test_each_directory_has_its_name_in_cookies(directories):
    found = [each.described for each in cookie_places.found_in(directories)]
    assert [(one.path, one.name) for one in found] == [
        ("/bookie/journal/current", "journal"),
        ("/a/current", "/a"),
        ("/b/current", "/b"),
    ]
    assert not any(one.has_data for one in found)
    write_whole(directories.all_ledgers[1], "0.log", b"")
    assert [each.described.has_data for each in cookie_places.found_in(directories)][2]


def test_what_was_there_comes_back(directories):
    before = cookie.of_directories("b", "journal", ["/a"], "one")
    ours = cookie.of_directories("b", "journal", ["/a", "/b"], "one")
    write_whole(directories.journal, "VERSION", before.encode().encode())
    found = cookie_places.found_in(directories)
    cookie_places.stamp(found, ours)
    assert cookies(directories) == [ours] * 3
    cookie_places.restore(found)
    assert cookies(directories) == [before, None, None]


def test_a_damaged_one_is_named(directories):
    write_whole(directories.ledgers, "VERSION", b"rot")
    with pytest.raises(StorageFailed, match="/a/current/VERSION"):
        cookie_places.found_in(directories)
