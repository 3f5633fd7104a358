"""In good weather a session keeps the contract; in bad weather nobody is told a lie."""

import random

import pytest
import trio

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_metadata_store")

from magnetar.core.kernel.errors import BadVersion, StorageFailed  # noqa: E402
from magnetar.core.ports.metadata_store import ABSENT, Versioned  # noqa: E402
from magnetar.core.ports.tests import contract_metadata_store as contract  # noqa: E402
from magnetar.core.testing.metadata import remove  # noqa: E402
from magnetar.core.testing.simulation.timeline import Timeline  # noqa: E402
from magnetar.core.testing.simulation.virtual_metadata import (  # noqa: E402
    SESSION_SECONDS,
    MetadataService,
    MetadataWeather,
)


@pytest.fixture
def service(nursery, autojump_clock):
    timeline = Timeline()
    nursery.start_soon(timeline.run)
    return MetadataService(timeline, random.Random(1))


def session(service):
    return service.session("client", service.timeline.host())


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_contract(check, service):
    await check(session(service))


async def test_a_lost_lease_is_told_of_before_anybody_can_take_it(service):
    store, other, lost, changed = session(service), session(service), [], []
    await store.lease("/owner", b"me", lambda: lost.append("/owner"))
    await store.lease("/given-up", b"me", lambda: lost.append("/given-up"))
    await remove(store, "/given-up")
    other.watch("/", changed.append)
    store.expire()
    assert (lost, changed) == (["/owner"], [])
    await trio.sleep(1.0)
    assert changed == ["/owner"]
    store.expire()
    await other.lease("/owner", b"you", lambda: lost.append("never"))
    assert lost == ["/owner"]


async def test_an_answer_may_be_lost_and_the_write_not(service):
    store = session(service)
    service.weather = MetadataWeather(unsure=1.0)
    with pytest.raises(StorageFailed):
        await store.put("/a", b"1", ABSENT)
    service.weather = MetadataWeather(lost=1.0)
    with pytest.raises(StorageFailed):
        await store.put("/a", b"2", 0)
    service.weather = MetadataWeather()
    assert await store.get("/a") == Versioned(b"1", 0)


async def test_what_stalls_is_carried_out_later(service):
    store = session(service)
    service.stall()
    with pytest.raises(StorageFailed):
        await store.put("/a", b"1", ABSENT)
    assert await service.truth.get("/a") is None
    service.go_on()
    assert await store.get("/a") == Versioned(b"1", 0)


async def test_a_server_may_be_behind_and_never_goes_back(service):
    writer, reader = session(service), session(service)
    service.weather = MetadataWeather(lag_seconds=5.0)
    await writer.put("/a", b"0", ABSENT)
    seen = []
    for number in range(20):
        await writer.put("/a", b"%d" % (number + 1), number)
        found = await reader.get("/a")
        seen.append(-1 if found is None else found.version)
    assert seen == sorted(seen)
    assert seen != list(range(1, 21))
    with pytest.raises(BadVersion):
        await reader.put("/a", b"x", 0)
    assert (await reader.get("/a")).version == 20, "its own write has brought it up to date"
    await writer.put("/a", b"last", 20)
    await reader.sync()
    assert (await reader.get("/a")).version == 21


async def test_a_report_is_not_older_than_what_is_read_then(service):
    writer, reader, reported = session(service), session(service), trio.Event()
    service.weather = MetadataWeather(lag_seconds=5.0)
    end = reader.watch("/a", lambda path: reported.set())
    await writer.put("/a/b", b"1", ABSENT)
    await reported.wait()
    assert await reader.get("/a/b") == Versioned(b"1", 0)
    end()


async def test_a_client_that_is_gone_loses_its_leases_and_not_what_it_has_sent(service):
    store, changes = session(service), []
    service.on_change = lambda path, before, after: changes.append((path, after is not None))
    await store.lease("/lease", b"", lambda: None)
    with trio.move_on_after(0.0):
        await store.put("/sent", b"", ABSENT)
    store.end()
    await trio.sleep(SESSION_SECONDS / 2)
    assert changes == [("/lease", True), ("/sent", True)]
    with pytest.raises(StorageFailed):
        await store.put("/late", b"", ABSENT)
    assert changes[2:] == [("/lease", False)]


async def test_the_end_of_a_session_leaves_alone_what_another_one_has_taken(service):
    """Its lease was deleted by a call that was on its way when the client died."""
    store, next_store = session(service), session(service)
    await store.lease("/lease", b"old", lambda: None)
    with trio.move_on_after(0.0):
        await store.delete("/lease", 0)
    store.end()
    await trio.sleep(SESSION_SECONDS / 2)
    await next_store.lease("/lease", b"new", lambda: None)
    await trio.sleep(SESSION_SECONDS)
    assert (await next_store.get("/lease")).value == b"new"


async def test_after_its_session_a_client_looks_at_all_that_it_watches(service):
    host = service.timeline.host()
    store, reported, lost = service.session("a", host), [], []
    await store.lease("/a/lease", b"", lambda: lost.append(1))
    end = store.watch("/a", reported.append)
    store.expire()
    assert lost == [1]
    await trio.sleep(1.0)
    assert set(reported) == {"/a", "/a/lease"}
    assert await service.truth.get("/a/lease") is None
    end()


async def test_a_frozen_client_hears_later_that_its_session_has_ended(service):
    host = service.timeline.host()
    store, lost = service.session("a", host), []
    await store.lease("/lease", b"", lambda: lost.append(1))
    host.freeze()
    store.expire()
    await trio.sleep(1.0)
    assert await service.truth.get("/lease") is None
    assert not lost
    host.thaw()
    assert lost == [1]
