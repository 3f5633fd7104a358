"""The MetadataStore while its ZooKeeper is frozen, killed and started again, or cut off."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import pytest
import trio
import trio.testing
from kazoo.client import KazooClient

from interop_tests.bookkeeper.cut import Cutter
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.sessions import ZooKeeperStatistics
from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata, open_zookeeper
from magnetar.core.ports.metadata_store import ABSENT, Versioned

pytestmark = [pytest.mark.java, pytest.mark.slow]
SESSION_SECONDS = 2.0


@asynccontextmanager
async def opened(server, session_seconds=SESSION_SECONDS) -> AsyncIterator[ZooKeeperMetadata]:
    async with open_zookeeper(parse(f"zk:{server.address}"), session_seconds) as store:
        yield store


class Loss:
    """What a lease tells of its loss."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self.count = 0
        self.at = 0.0

    def __call__(self) -> None:
        self.count += 1
        self.at = trio.current_time()
        self.event.set()


async def test_a_lease_is_given_up_while_zookeeper_is_silent(own_zookeeper) -> None:
    """By the own clock, before ZooKeeper could have expired it; and it does not come back."""
    loss = Loss()
    async with opened(own_zookeeper) as store:
        await store.lease("/lease", b"", loss)
        assert store.statistics() == ZooKeeperStatistics(True, 0, 1, 0)
        own_zookeeper.freeze()
        frozen = trio.current_time()
        with trio.fail_after(10):
            await loss.event.wait()
        assert loss.at - frozen < SESSION_SECONDS * 0.9, "ZooKeeper waits longer"
        assert store.statistics() == ZooKeeperStatistics(False, 1, 0, 0)
        own_zookeeper.thaw()
        other = Loss()
        with trio.fail_after(20):
            while True:
                try:
                    await store.lease("/lease", b"again", other)
                except AlreadyExists:
                    await trio.sleep(0.01)  # until the old session is closed
                else:
                    break
        assert await store.get("/lease") == Versioned(b"again", 0)
        assert (loss.count, other.count) == (1, 0)


async def test_a_lease_lives_as_long_as_zookeeper_answers(own_zookeeper) -> None:
    loss = Loss()
    async with opened(own_zookeeper) as store:
        await store.lease("/lease", b"", loss)
        await trio.sleep(3 * SESSION_SECONDS)
        assert loss.count == 0
        await store.delete("/lease", 0)
        own_zookeeper.freeze()
        await trio.sleep(2 * SESSION_SECONDS)
        own_zookeeper.thaw()
        assert await store.get("/lease") is None
        assert loss.count == 0, "it was given up before"


async def test_all_goes_on_after_a_restart_of_zookeeper(own_zookeeper) -> None:
    """A quick one: the session lives on, and with it the lease."""
    heard: list[str] = []
    loss = Loss()
    async with opened(own_zookeeper, session_seconds=20) as store:
        await store.put("/a/before", b"1", ABSENT)
        store.watch("/a", heard.append)
        await store.lease("/lease", b"", loss)
        await trio.to_thread.run_sync(own_zookeeper.kill)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.put, "/a/during", b"", ABSENT)
            await trio.to_thread.run_sync(own_zookeeper.start)
        assert await store.get("/a/before") == Versioned(b"1", 0)
        with trio.fail_after(10):
            while "/a" not in heard:
                await store.sync()
        await store.put("/a/after", b"", ABSENT)
        assert heard[-1] == "/a/after"
        assert loss.count == 0
        with pytest.raises(AlreadyExists):
            await store.lease("/lease", b"", loss)


async def test_calls_end_when_zookeeper_does_not_come_back(own_zookeeper) -> None:
    async with opened(own_zookeeper, session_seconds=0.5) as store:
        await trio.to_thread.run_sync(own_zookeeper.kill)
        started = trio.current_time()
        for call in (
            lambda: store.get("/a"),
            lambda: store.put("/a", b"", ABSENT),
            lambda: store.next("/a"),
        ):
            with pytest.raises(StorageFailed, match=r"has not answered for 1\.5 s"):
                await call()
        assert trio.current_time() - started < 8


async def test_an_expired_session_is_told_of(own_zookeeper) -> None:
    """ZooKeeper ends a session without its client having been silent."""
    loss = Loss()
    async with opened(own_zookeeper, session_seconds=10) as store:
        await store.lease("/lease", b"", loss)
        session = store._sessions.current
        client_id = (session.session_id, session._client.client_id[1])
        thief = KazooClient(own_zookeeper.address, client_id=client_id)
        await trio.to_thread.run_sync(thief.start)
        await trio.to_thread.run_sync(thief.stop)
        thief.close()
        with trio.fail_after(10):
            await loss.event.wait()
        assert await store.get("/lease") is None
        await store.lease("/lease", b"", Loss())
        assert loss.count == 1


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
async def test_another_process_takes_the_lease_of_one_that_is_silent(zookeeper, how) -> None:
    """One that is stopped and goes on knows that it has lost it; ZooKeeper gave it to us."""
    path = f"/silent-{how.name}"
    with lease_holder(zookeeper, path) as child:
        assert await trio.to_thread.run_sync(child.stdout.readline) == "held\n"
        async with opened(zookeeper) as store:
            with pytest.raises(AlreadyExists):
                await store.lease(path, b"us", Loss())
            gone = trio.Event()
            store.watch(path, lambda _: gone.set())
            child.send_signal(how)
            with trio.fail_after(10 * SESSION_SECONDS):
                await gone.wait()
            await store.lease(path, b"us", Loss())
            assert await store.get(path) == Versioned(b"us", 0)
        if how is signal.SIGSTOP:
            child.send_signal(signal.SIGCONT)
            assert await trio.to_thread.run_sync(child.stdout.readline) == "lost\n"


@contextmanager
def lease_holder(server, path: str) -> Iterator[subprocess.Popen[str]]:
    words = (f"zk:{server.address}", path, str(SESSION_SECONDS))
    command = [sys.executable, "-m", "interop_tests.bookkeeper.lease_child", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


async def test_a_caller_that_is_cancelled_knows_what_became_of_its_write(zookeeper) -> None:
    known: list[int] = []

    async def write(store) -> None:
        known.append(await store.put("/cancelled", b"1", ABSENT))

    async with opened(zookeeper, session_seconds=10) as store:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write, store)
                await trio.testing.wait_all_tasks_blocked()  # it waits for its answer
                scope.cancel()
        assert known == [0]
        assert await store.get("/cancelled") == Versioned(b"1", 0)


async def test_a_half_open_connection_is_left(zookeeper) -> None:
    """kazoo's pings find that nothing is answered, after two thirds of the session: soon enough
    for it and its lease, also on a busy machine.
    """
    loss = Loss()
    with Cutter(zookeeper.port) as cutter:
        async with open_zookeeper(parse(f"zk:127.0.0.1:{cutter.port}"), 12) as store:
            await store.lease("/half-open-lease", b"1", loss)
            cutter.lose_the_way()
            assert await store.get("/half-open-lease") == Versioned(b"1", 0)
            assert loss.count == 0


async def test_a_half_open_connection_under_load_is_left(zookeeper) -> None:
    """kazoo sends no pings while there are requests, and would never notice."""
    with Cutter(zookeeper.port) as cutter:
        async with open_zookeeper(parse(f"zk:127.0.0.1:{cutter.port}"), 3) as store:
            await store.put("/half-open", b"1", ABSENT)
            cutter.lose_the_way()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask_all_the_time, store, nursery)
                with trio.fail_after(6):
                    assert await store.get("/half-open") == Versioned(b"1", 0)
                nursery.cancel_scope.cancel()


async def ask_all_the_time(store, nursery) -> None:
    while True:
        nursery.start_soon(store.get, "/half-open")
        await trio.sleep(0.1)


# -- answers that are lost ------------------------------------------------------------------------


@asynccontextmanager
async def through_a_cutter(server) -> AsyncIterator[tuple[ZooKeeperMetadata, Cutter, KazooClient]]:
    peer = KazooClient(server.address)
    await trio.to_thread.run_sync(peer.start)
    try:
        with Cutter(server.port) as cutter:
            async with open_zookeeper(parse(f"zk:127.0.0.1:{cutter.port}"), 10) as store:
                yield store, cutter, peer
    finally:
        await trio.to_thread.run_sync(peer.stop)
        peer.close()


async def test_a_write_whose_answer_is_lost_happens_once(zookeeper) -> None:
    async with through_a_cutter(zookeeper) as (store, cutter, _):
        cutter.cut_answer()
        assert await store.put("/once", b"1", ABSENT) == 0
        cutter.cut_answer()
        assert await store.put("/once", b"2", 0) == 1
        assert await store.get("/once") == Versioned(b"2", 1)
        cutter.cut_answer()
        await store.delete("/once", 1)
        assert await store.get("/once") is None
        assert cutter.cuts == 3


async def test_a_write_that_another_has_won_meanwhile(zookeeper) -> None:
    async with through_a_cutter(zookeeper) as (store, cutter, peer):
        await store.put("/raced", b"0", ABSENT)
        cutter.cut_request(lambda: peer.set("/raced", b"theirs"))
        with pytest.raises(BadVersion):
            await store.put("/raced", b"ours", 0)
        cutter.cut_request(lambda: peer.create("/theirs", b"theirs"))
        with pytest.raises(AlreadyExists):
            await store.put("/theirs", b"ours", ABSENT)
        assert cutter.cuts == 2


async def test_what_others_write_does_not_mislead(zookeeper) -> None:
    """Our write happened, and was written over; or it did not, and theirs has the same bytes."""
    async with through_a_cutter(zookeeper) as (store, cutter, peer):
        await store.put("/misled", b"0", ABSENT)
        cutter.cut_answer(lambda: peer.set("/misled", b"theirs"))
        assert await store.put("/misled", b"ours", 0) == 1
        cutter.cut_request(lambda: peer.set("/misled", b"same"))
        with pytest.raises(BadVersion):
            await store.put("/misled", b"same", 2)
        cutter.cut_request(lambda: peer.create("/misled-too", b"same"))
        with pytest.raises(AlreadyExists):
            await store.put("/misled-too", b"same", ABSENT)
        cutter.cut_answer(lambda: peer.delete("/misled-too"))
        assert await store.put("/misled-too", b"1", 0) == 1
        assert await store.get("/misled-too") is None
        assert cutter.cuts == 4


async def test_with_the_session_goes_the_proof(zookeeper) -> None:
    """Then it is not guessed: the caller hears that nobody knows."""
    async with through_a_cutter(zookeeper) as (store, cutter, peer):
        lose = partial(store._sessions.lose, "the test says so")
        await store.put("/proof", b"0", ABSENT)
        for path, call in (
            ("/proof", lambda: store.put("/proof", b"same", 0)),
            ("/proof-new", lambda: store.put("/proof-new", b"same", ABSENT)),
            ("/proof-gone", lambda: store.delete("/proof-gone", 0)),
        ):
            peer.ensure_path("/proof-gone")
            cutter.cut_answer(partial(trio.from_thread.run_sync, lose, trio_token=token()))
            if path == "/proof-gone":
                await call()
            else:
                with pytest.raises(StorageFailed, match="is not known whether this server"):
                    await call()
        cutter.cut_request(partial(trio.from_thread.run_sync, lose, trio_token=token()))
        assert await store.put("/proof-again", b"1", ABSENT) == 0


async def test_a_slot_that_is_gone_proves_nothing(zookeeper) -> None:
    """ZooKeeper has ended the session, and has not said so yet: the write has not happened."""
    async with through_a_cutter(zookeeper) as (store, _, peer):
        await store.put("/slotless", b"0", ABSENT)
        for name in peer.get_children("/magnetar-writers"):
            peer.delete(f"/magnetar-writers/{name}")
        assert await store.put("/slotless", b"1", 0) == 1
        assert await store.get("/slotless") == Versioned(b"1", 1)


def token() -> trio.lowlevel.TrioToken:
    return trio.lowlevel.current_trio_token()


async def test_a_deletion_does_not_hit_what_was_created_since(zookeeper) -> None:
    async with through_a_cutter(zookeeper) as (store, cutter, peer):
        peer.create("/again", b"old")
        assert await store.get("/again") == Versioned(b"old", 0)
        cutter.cut_answer(lambda: peer.create("/again", b"new"))
        await store.delete("/again", 0)
        assert await store.get("/again") == Versioned(b"new", 0)
        with pytest.raises(NotFound):
            await store.delete("/never", 0)


async def test_a_lease_and_a_number_whose_answers_are_lost(zookeeper) -> None:
    loss = Loss()
    async with through_a_cutter(zookeeper) as (store, cutter, peer):
        cutter.cut_answer()
        await store.lease("/cut-lease", b"us", loss)
        assert peer.get("/cut-lease")[0] == b"us"
        with pytest.raises(AlreadyExists):
            await store.lease("/cut-lease", b"us", loss)
        first = await store.next("/cut-counter")
        cutter.cut_answer()
        second = await store.next("/cut-counter")
        assert second > first
        assert loss.count == 0


async def test_who_has_no_time_left_does_not_wait_for_a_frozen_server(own_zookeeper) -> None:
    """Writes are shielded, and the good-bye is: but not for long from the end of the block."""
    with trio.CancelScope() as scope:
        async with opened(own_zookeeper, session_seconds=20) as store:
            await store.put("/a", b"x", ABSENT)
            own_zookeeper.freeze()
            scope.deadline = trio.current_time() + 0.1
            await store.put("/b", b"x", ABSENT)
    assert scope.cancelled_caught
    assert trio.current_time() < scope.deadline + 0.9, "before the server's grace is over"
