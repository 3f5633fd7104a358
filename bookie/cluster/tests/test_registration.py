import pytest
import trio
import trio.testing

from magnetar.bookie.cluster import cluster
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.registration import Registration
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.kernel.errors import AlreadyExists, Invalid, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import ignore_loss, remove

INFO = ServiceInfo((BookieEndpoint("bookie", "h", 1),))
WRITABLE = "/ledgers/available/b:1"
READ_ONLY = "/ledgers/available/readonly/b:1"


class Failing(MemoryMetadata):
    """A store that may refuse leases."""

    failures = 0

    async def lease(self, path, value, lost) -> None:
        if self.failures:
            self.failures -= 1
            raise StorageFailed("no answer")
        await super().lease(path, value, lost)


@pytest.fixture
async def store() -> Failing:
    store = Failing()
    await initialize_cluster(store, "one")
    return store


async def registered(store, nursery) -> Registration:
    made = Registration(store, await cluster.find(store), "b:1", INFO)
    await nursery.start(made.run)
    return made


async def test_a_bookie_is_there_while_it_runs(store, nursery) -> None:
    made = await registered(store, nursery)
    assert (await store.get(WRITABLE)).value == INFO.encode()
    assert made.is_held


async def test_an_end_while_it_waits_for_a_former_session(store, nursery) -> None:
    await store.lease(WRITABLE, b"they", ignore_loss)
    waiting = Registration(store, await cluster.find(store), "b:1", INFO)
    nursery.start_soon(nursery.start, waiting.run)
    await trio.testing.wait_all_tasks_blocked()
    await waiting.end()
    await trio.testing.wait_all_tasks_blocked()
    assert nursery.child_tasks == set()
    assert (await store.get(WRITABLE)).value == b"they"
    assert not waiting.is_held


async def test_after_a_lost_session_it_registers_again(store, nursery) -> None:
    made = await registered(store, nursery)
    store.failures = 3
    store.expire()
    assert not made.is_held
    await trio.testing.wait_all_tasks_blocked()
    assert made.is_held
    assert store.failures == 0
    assert await store.get(WRITABLE) is not None


async def test_there_is_a_node_at_every_moment_of_a_change(store, nursery) -> None:
    made = await registered(store, nursery)
    seen: list[tuple[bool, bool]] = []

    def look(_: str) -> None:
        seen.append((WRITABLE in store._values, READ_ONLY in store._values))

    store.watch("/ledgers/available", look)
    for read_only in (True, False):
        made.set_read_only(read_only)
        await trio.testing.wait_all_tasks_blocked()
    assert seen == [(True, True), (False, True), (True, True), (True, False)]
    made.set_read_only(True)
    made.set_read_only(False)
    await trio.testing.wait_all_tasks_blocked()
    assert seen[4:] == [], "nothing has changed in the end"


async def test_a_session_lost_between_the_modes(store, nursery) -> None:
    made = await registered(store, nursery)
    made.set_read_only(True)
    store.expire()
    await trio.testing.wait_all_tasks_blocked()
    assert await store.get(WRITABLE) is None
    assert await store.get(READ_ONLY) is not None


async def test_the_node_of_a_former_process_is_waited_for(store, nursery, autojump_clock) -> None:
    await store.lease(WRITABLE, b"", ignore_loss)

    async def vanish() -> None:
        await trio.sleep(20)
        await remove(store, WRITABLE)

    nursery.start_soon(vanish)
    await registered(store, nursery)
    assert (await store.get(WRITABLE)).value == INFO.encode()
    assert trio.current_time() >= 20


async def test_another_process_of_that_identity(store, autojump_clock) -> None:
    await store.lease(WRITABLE, b"", ignore_loss)
    with pytest.RaisesGroup(pytest.RaisesExc(AlreadyExists, match="registered as bookie b:1")):
        async with trio.open_nursery() as nursery:
            await registered(store, nursery)


async def test_the_node_goes_before_the_bookie_stops(store, nursery) -> None:
    made = await registered(store, nursery)
    await made.end()
    assert await store.get(WRITABLE) is None
    assert not made.is_held
    made.set_read_only(True)
    await trio.testing.wait_all_tasks_blocked()
    assert await store.get(READ_ONLY) is None


async def test_a_store_without_an_answer_keeps_no_bookie_from_stopping(
    store, nursery, autojump_clock, monkeypatch
) -> None:
    made = await registered(store, nursery)

    async def silent(path):
        await trio.sleep_forever()

    monkeypatch.setattr(store, "get", silent)
    with trio.fail_after(5):
        await made.end()


async def test_no_bookie_is_called_readonly(store) -> None:
    with pytest.raises(Invalid):
        Registration(store, await cluster.find(store), "readonly", INFO)


class Expiring(MemoryMetadata):
    """A store whose session ends as soon as it has granted its first lease, before the answer."""

    expires = True

    async def lease(self, path, value, lost) -> None:
        await super().lease(path, value, lost)
        if self.expires:
            self.expires = False
            self.expire()


async def test_a_session_that_ends_before_its_answer_is_heard(nursery) -> None:
    store = Expiring()
    await initialize_cluster(store, "one")
    made = await registered(store, nursery)
    assert made.is_held
    assert (await store.get(WRITABLE)).value == INFO.encode()


async def test_a_node_of_the_mode_before_that_could_not_be_deleted(
    store, nursery, monkeypatch
) -> None:
    made = await registered(store, nursery)
    delete, failures = store.delete, iter([1])

    async def fail_once(path, expected) -> None:
        if next(failures, None):
            raise StorageFailed("no answer")
        await delete(path, expected)

    monkeypatch.setattr(store, "delete", fail_once)
    made.set_read_only(True)
    await trio.testing.wait_all_tasks_blocked()
    assert (await store.get(WRITABLE), made.is_held) == (None, True)
    made.set_read_only(False)
    await trio.testing.wait_all_tasks_blocked()
    assert await store.get(READ_ONLY) is None
    assert await store.get(WRITABLE) is not None
