import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.cookies import Cookies
from magnetar.bookie.format.cookie import Cookie
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, Corrupted, NotFound
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "x")
COOKIE = Cookie("b:1", "/journal", "1\t/ledgers", "x")


async def test_cookies_come_and_go() -> None:
    store = MemoryMetadata()
    cookies = Cookies(store, CLUSTER)
    assert await cookies.read("b:1") is None
    assert await cookies.write(COOKIE) == 0
    with pytest.raises(AlreadyExists):
        await cookies.write(COOKIE)
    found = await cookies.read("b:1")
    assert (found.cookie, found.version) == (COOKIE, 0)
    assert (await store.get("/ledgers/cookies/b:1")).value == COOKIE.encode().encode()
    assert await cookies.write(COOKIE, expected=0) == 1
    with pytest.raises(BadVersion):
        await cookies.write(COOKIE, expected=0)
    assert await cookies.bookies() == ["b:1"]
    await cookies.delete("b:1")
    with pytest.raises(NotFound, match="b:1 has no cookie"):
        await cookies.delete("b:1")
    assert await cookies.bookies() == []
    assert await store.get("/ledgers/cookies") is not None, "Apache's tools list it"


async def test_a_cookie_that_makes_no_sense() -> None:
    store = MemoryMetadata()
    for value in (b"?", b"\xff", b"3\nold\n"):
        await overwrite(store, "/ledgers/cookies/b:1", value)
        with pytest.raises(Corrupted, match="the cookie of bookie b:1"):
            await Cookies(store, CLUSTER).read("b:1")
