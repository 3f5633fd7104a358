"""Whether a bookie may start as a member of a cluster, with directories on a disk in memory."""

import random

import pytest

from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.cluster.formatting import format_cluster, initialize_cluster
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.bookie.membership import Membership
from magnetar.bookie.server.directories import Directories, make_directories
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import Invalid, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.memory_disk import MemoryDisk
from magnetar.core.testing.stepped_threads import open_stepped_threads


class Bookie:
    """One that starts again and again."""

    def __init__(self, store, disk, bookie_id="b:1") -> None:
        self.store, self.disk, self.bookie_id = store, disk, bookie_id
        self.ledgers: list[str] = []
        """Paths of ledger directories elsewhere."""

    @property
    def directories(self) -> Directories:
        others = [self.disk.directory(path) for path in self.ledgers]
        return make_directories(self.disk.directory("/bookie"), None, others)

    async def starts(self, *, may_grow: bool = False) -> Membership:
        member = Membership(self.store, await clusters.find(self.store), self.bookie_id)
        refused = None
        async with open_stepped_threads(random.Random(1).randrange) as threads:
            try:
                await member.check(threads, self.directories, may_grow=may_grow)
            except StorageFailed as error:
                refused = error
        if refused is not None:
            raise refused
        return member

    def cookies(self) -> list[bool]:
        return [
            "VERSION" in d.names() for d in (self.directories.journal, self.directories.ledgers)
        ]


@pytest.fixture
async def store() -> MemoryMetadata:
    store = MemoryMetadata()
    await initialize_cluster(store, "one")
    return store


@pytest.fixture
def bookie(store) -> Bookie:
    return Bookie(store, MemoryDisk())


async def test_a_new_bookie_has_its_cookie_everywhere(store, bookie) -> None:
    await bookie.starts()
    stored = await Cookies(store, await clusters.find(store)).read("b:1")
    for directory in (bookie.directories.journal, bookie.directories.ledgers):
        assert read_whole(directory, "VERSION").decode() == stored.cookie.encode()
    assert stored.cookie.instance_id == "one"
    await bookie.starts()
    assert (await store.get("/ledgers/cookies/b:1")).version == 0, "as it was"


async def test_an_empty_disk_is_not_that_of_a_known_bookie(store, bookie) -> None:
    await bookie.starts()
    bookie.disk = MemoryDisk()
    with pytest.raises(StorageFailed, match="is it the right disk"):
        await bookie.starts()
    assert bookie.cookies() == [False, False]


async def test_a_journal_that_was_lost(bookie) -> None:
    await bookie.starts()
    bookie.directories.journal.remove("VERSION")
    with pytest.raises(StorageFailed, match="/bookie/journal/current lacks the cookie"):
        await bookie.starts()


async def test_directories_are_added_if_the_operator_says_so(store, bookie) -> None:
    bookie.ledgers = ["/a"]
    await bookie.starts()
    bookie.ledgers = ["/a", "/b"]
    with pytest.raises(StorageFailed, match="other directories"):
        await bookie.starts()
    bookie.ledgers = ["/b", "/a"]
    with pytest.raises(StorageFailed, match="other directories"):
        await bookie.starts(may_grow=True)  # the indexes are in the first one
    bookie.ledgers = ["/a", "/b"]
    await bookie.starts(may_grow=True)
    await bookie.starts()
    stored = await Cookies(store, await clusters.find(store)).read("b:1")
    assert stored.cookie.ledger_directories == "2\t/a\t/b"
    bookie.directories.all_ledgers[1].remove("VERSION")
    for may_grow in (False, True):
        with pytest.raises(StorageFailed, match=r"/b/current .*is it the right disk"):
            await bookie.starts(may_grow=may_grow)


async def test_data_that_the_cluster_knows_nothing_of(store, bookie) -> None:
    write_whole(bookie.directories.ledgers, "0.log", b"")
    with pytest.raises(StorageFailed, match="is it the right cluster"):
        await bookie.starts()
    assert bookie.cookies() == [False, False]
    assert await store.get("/ledgers/cookies/b:1") is None


async def test_another_cluster_and_another_name(store, bookie) -> None:
    await bookie.starts()
    other = Bookie(store, bookie.disk, "b:2")
    with pytest.raises(StorageFailed, match="has the cookie of bookie b:1 in the cluster one"):
        await other.starts()
    await format_cluster(store, "two", force=True)
    with pytest.raises(StorageFailed, match="this one is b:1 in two"):
        await bookie.starts()


async def test_a_cookie_that_makes_no_sense(bookie) -> None:
    await bookie.starts()
    write_whole(bookie.directories.ledgers, "VERSION", b"x")
    with pytest.raises(StorageFailed, match="copy VERSION from another directory"):
        await bookie.starts()


@pytest.mark.parametrize("write", range(4))
async def test_a_first_start_that_was_cut_off_goes_on(store, bookie, write) -> None:
    """After each of its writes: two directories, then the store."""
    await bookie.starts()
    if write < 3:
        await store.delete("/ledgers/cookies/b:1", 0)
    for directory in (bookie.directories.ledgers, bookie.directories.journal)[: 2 - min(write, 2)]:
        directory.remove("VERSION")
    await bookie.starts()
    assert bookie.cookies() == [True, True]


async def test_of_two_that_begin_as_one_the_second_leaves_nothing(bookie) -> None:
    class Raced(MemoryMetadata):
        raced = False

        async def put(self, path, value, expected):
            if path.startswith("/ledgers/cookies/") and not self.raced:
                self.raced = True
                await Bookie(self, MemoryDisk()).starts()
            return await super().put(path, value, expected)

    store = Raced()
    await initialize_cluster(store, "one")
    bookie.store = store
    with pytest.raises(StorageFailed, match="another process starts as bookie b:1"):
        await bookie.starts()
    assert bookie.cookies() == [False, False]


async def test_it_registers_and_asks_for_ledgers(store, bookie, nursery) -> None:
    member = await bookie.starts()
    registration = member.registration(ServiceInfo((BookieEndpoint("bookie", "h", 1),)), 1.0)
    await nursery.start(registration.run)
    assert await store.get("/ledgers/available/b:1") is not None
    assert await member.ledgers.deleted([3]) == [3]
    with pytest.raises(Invalid):
        await Bookie(store, MemoryDisk(), "read only").starts()
