"""Clusters that Apache's bookies and tools share with our code: each reads what the other wrote."""

import itertools
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.bookies import Bookies
from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.cluster.formatting import format_cluster, initialize_cluster, nuke_cluster
from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.registration import Registration
from magnetar.bookie.format import cookie, ledger_metadata
from magnetar.bookie.format.cookie import Cookie
from magnetar.bookie.format.layout import LAYOUTS
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.kernel.errors import AlreadyExists, NotAllowed
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata, open_zookeeper
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import overwrite, remove

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
ROOTS = itertools.count()
ONE = "6a1f0f3e-0000-4000-8000-000000000001"


@pytest.fixture
def uri(zookeeper) -> str:
    """A cluster's own place in the tree."""
    return f"zk+hierarchical://{zookeeper.address}/c{next(ROOTS)}/ledgers"


@asynccontextmanager
async def opened(uri: str) -> AsyncIterator[ZooKeeperMetadata]:
    address = parse(uri)
    assert address.ledgers == clusters.ROOT
    async with open_zookeeper(address, timeout_seconds=5) as store:
        yield store


async def in_thread(function, *arguments, **options):
    return await trio.to_thread.run_sync(lambda: function(*arguments, **options))


@pytest.mark.heavy
async def test_a_stock_bookie_on_a_cluster_that_we_formatted(uri, tmp_path) -> None:
    async with opened(uri) as store:
        cluster = await initialize_cluster(store, ONE)
        listed: list[set[str]] = []
        bookies = Bookies(store, cluster, lambda: listed.append(set(bookies.writable)))
        async with trio.open_nursery() as nursery:
            await nursery.start(bookies.run)
            apache = ApacheBookie(uri, tmp_path / "apache")
            try:
                await in_thread(apache.start)
                with trio.fail_after(20):
                    while apache.bookie_id not in bookies.writable:
                        await store.sync()
                info = bookies.writable[apache.bookie_id]
                assert info.rpc() == BookieEndpoint("bookie", "127.0.0.1", apache.port)
                await a_stock_cookie(store, cluster, apache)
                await a_stock_ledger(store, cluster, apache)
                assert ONE in await in_thread(apache.shell, "whatisinstanceid")
                with pytest.raises(NotAllowed, match="are running"):
                    await nuke_cluster(store, cluster.root, ONE)
                await in_thread(apache.stop, signal.SIGKILL)
                with trio.fail_after(20):
                    while bookies.writable:
                        await store.sync()
                assert listed == [{apache.bookie_id}, set()]
            finally:
                await in_thread(apache.stop, signal.SIGKILL)
            nursery.cancel_scope.cancel()


async def a_stock_cookie(store, cluster, apache) -> None:
    """What the bookie wrote in ZooKeeper is what it wrote on its disk."""
    found = await Cookies(store, cluster).read(apache.bookie_id)
    assert found.cookie == Cookie(
        apache.bookie_id,
        f"{apache.directory}/journal",
        cookie.directories([f"{apache.directory}/ledgers"]),
        ONE,
    )
    on_disk = (apache.directory / "ledgers/current/VERSION").read_text()
    assert found.cookie.encode() == on_disk


def written(said: str) -> int:
    """The ledger that the stock client has written."""
    (found,) = re.findall(r"^ledger (\d+)$", said, re.MULTILINE)
    return int(found)


async def a_stock_ledger(store, cluster, apache) -> None:
    ledger_id = written(await in_thread(apache.client, "write", "10"))
    ledgers = ClusterLedgers(store, cluster)
    assert await ledgers.ids() == [ledger_id]
    ledger = await ledgers.read(ledger_id)
    assert (ledger.state, ledger.lastEntryId) == (ledger_metadata.CLOSED, 9)
    assert list(ledger.segment[0].ensembleMember) == [apache.bookie_id]
    assert ledger_metadata.info(ledger_id, ledger).properties == {"key": b"value"}
    stored = await store.get(cluster.ledger(ledger_id))
    assert ledger_metadata.encode(ledger, 3) == stored.value, "byte for byte"
    # one of ours, with the next id of the same counter, read by the stock tools
    ours = await LedgerIdGenerator(store, cluster).next()
    assert ours == ledger_id + 1
    fresh = ledger_metadata.fresh((apache.bookie_id,), (1, 1), {"key": b"value"}, 123_000, 77)
    await ledgers.create(ours, fresh)
    said = await in_thread(apache.shell, "ledgermetadata", "-ledgerid", str(ours))
    assert "state=OPEN" in said
    assert apache.bookie_id in said
    said = await in_thread(apache.shell, "listledgers")
    for each in (ledger_id, ours):
        assert re.search(rf"ledgerI[dD]=?.*\b{each}\b", said), said
    said = await in_thread(apache.client, "open", str(ours))
    assert "last -1 " in said, "the stock client has recovered our ledger, which is empty"
    assert (await ledgers.read(ours)).state == ledger_metadata.CLOSED
    await in_thread(apache.client, "delete", str(ours))
    assert await ledgers.ids() == [ledger_id]
    await ledgers.delete(ledger_id)
    said = await in_thread(apache.client, "open", str(ledger_id), succeeds=False)
    assert "No such ledger exists on Metadata Server" in said


async def test_ids_beyond_31_bits(uri, tmp_path) -> None:
    async with opened(uri) as store:
        cluster = await initialize_cluster(store, ONE)
        await store.put("/ledgers/idgen-long", b"", ABSENT)
        ids = LedgerIdGenerator(store, cluster)
        assert await ids.next() == 1 << 32
        with running_bookie(uri, tmp_path / "apache") as apache:
            theirs = written(await in_thread(apache.client, "write", "1"))
        assert theirs == (1 << 32) + 1
        assert await ids.next() == (1 << 32) + 2
        assert await ClusterLedgers(store, cluster).ids() == [theirs]
        path = "/ledgers/000/0000/0042/9496/L7297"
        assert (await store.get(path)) is not None


@pytest.mark.parametrize("name", ["longhierarchical", "flat"])
async def test_other_layouts(zookeeper, tmp_path, name) -> None:
    uri = f"zk+{name}://{zookeeper.address}/other-{name}"
    address = parse(uri)
    assert (address.root, address.ledgers) == ("", f"/other-{name}")
    async with open_zookeeper(address, timeout_seconds=5) as store:
        cluster = await initialize_cluster(store, ONE, address.ledgers, LAYOUTS[name])
        with running_bookie(uri, tmp_path / "apache") as apache:
            theirs = written(await in_thread(apache.client, "write", "1"))
        assert await ClusterLedgers(store, cluster).ids() == [theirs]


async def test_clusters_that_each_formats_for_the_other(uri, tmp_path) -> None:
    apache = ApacheBookie(uri, tmp_path / "apache")
    async with opened(uri) as store:
        # Apache's shell makes no root, and ours is made with the first write.
        await overwrite(store, "/first", b"")
        await remove(store, "/first")
        await in_thread(apache.shell, "initnewcluster")
        theirs = await clusters.find(store, layout="hierarchical")
        assert theirs.layout is LAYOUTS["hierarchical"]
        with pytest.raises(AlreadyExists):
            await initialize_cluster(store, ONE)
        made = await format_cluster(store, ONE, force=True)
        assert ONE in await in_thread(apache.shell, "whatisinstanceid")
        await in_thread(apache.shell, "initnewcluster", succeeds=False)
        await in_thread(apache.shell, "metaformat", "-nonInteractive", "-force")
        again = await clusters.find(store)
        assert again.instance_id not in (theirs.instance_id, made.instance_id)
        nuke = ("nukeexistingcluster", "-zkledgersrootpath", apache_root(uri), "-instanceid")
        await in_thread(apache.shell, *nuke, ONE, succeeds=False)
        await in_thread(apache.shell, *nuke, again.instance_id)
        assert await store.children("/ledgers") == []
        await initialize_cluster(store, ONE)
        await in_thread(apache.shell, *nuke, ONE)
        await in_thread(apache.shell, "initnewcluster")
        await nuke_cluster(store, "/ledgers", (await clusters.find(store)).instance_id)
        assert await store.children("/") == []
        assert await store.get("/ledgers") is None


def apache_root(uri: str) -> str:
    return "/" + uri.split("/", 3)[3]


async def test_a_cookie_of_ours_lets_a_stock_bookie_start(uri, tmp_path) -> None:
    apache = ApacheBookie(uri, tmp_path / "apache")
    async with opened(uri) as store:
        cluster = await initialize_cluster(store, ONE)
        made = Cookie(
            apache.bookie_id,
            f"{apache.directory}/journal",
            cookie.directories([f"{apache.directory}/ledgers"]),
            ONE,
        )
        await Cookies(store, cluster).write(made)
        for place in ("journal", "ledgers"):
            (apache.directory / place / "current").mkdir(parents=True)
            (apache.directory / place / "current/VERSION").write_text(made.encode())
        try:
            await in_thread(apache.start)
        finally:
            await in_thread(apache.stop, signal.SIGKILL)
        assert (await Cookies(store, cluster).read(apache.bookie_id)).version == 0, "as it was"


async def test_the_stock_tools_see_a_bookie_of_ours(uri, tmp_path) -> None:
    apache = ApacheBookie(uri, tmp_path / "apache")
    async with opened(uri) as store:
        cluster = await initialize_cluster(store, ONE)
        info = ServiceInfo((BookieEndpoint("bookie", "127.0.0.1", 31810),), {"version": "x"})
        await Cookies(store, cluster).write(Cookie("ours", "/j", cookie.directories(["/l"]), ONE))
        ours = Registration(store, cluster, "ours", info)
        async with trio.open_nursery() as nursery:
            await nursery.start(ours.run)
            said = await in_thread(apache.shell, "listbookies", "-rw")
            assert "ours" in said
            assert "127.0.0.1:31810" in said or "Port:31810" in said, said
            ours.set_read_only(True)
            with trio.fail_after(10):
                while await store.get("/ledgers/available/ours") is not None:
                    await store.sync()
            assert "ours" in await in_thread(apache.shell, "listbookies", "-ro")
            assert "ours" not in await in_thread(apache.shell, "listbookies", "-rw")
            said = await in_thread(apache.shell, "endpointinfo", "-b", "ours")
            assert "31810" in said, said
            nursery.cancel_scope.cancel()
